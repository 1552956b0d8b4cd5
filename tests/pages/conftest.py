"""A browser for the tests of pages."""

import os
import shutil

import pytest


@pytest.fixture(scope="session")
def browser():
    """Chromium, driven by playwright."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no chromium on the PATH; set CHROMIUM to one")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser):
    """Opens a page at the width of a phone, once it is ready; nothing may go to the console."""
    context = browser.new_context(viewport={"width": 380, "height": 800})
    complaints = []

    def open_page(path):
        window = context.new_page()
        window.on("console", lambda message: complaints.append(message.text))
        window.on("pageerror", lambda error: complaints.append(str(error)))
        window.goto(path.as_uri())
        window.wait_for_selector("html[data-ready=true]")
        return window

    yield open_page
    assert complaints == []
    context.close()
