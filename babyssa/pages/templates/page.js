// What every page needs: parts that were embedded compressed, and plots that follow light and dark.

const dark = matchMedia("(prefers-color-scheme: dark)");
const onTheme = () => document.documentElement.classList.toggle("dark", dark.matches);
dark.addEventListener("change", onTheme);
onTheme();

/** The bytes of an embedded part: base64 of gzip. */
async function unpack(id) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

const text = async (id) => new TextDecoder().decode(await unpack(id));

const urlOf = async (id) => URL.createObjectURL(new Blob([await unpack(id)], { type: "text/javascript" }));

let plotly;
function loadPlotly() {
  plotly ??= urlOf("plotly").then(
    (url) =>
      new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = url;
        script.onload = () => resolve(window.Plotly);
        script.onerror = reject;
        document.head.append(script);
      }),
  );
  return plotly;
}

function themed(layout) {
  const style = getComputedStyle(document.documentElement);
  const [ink, line] = ["--ink", "--line"].map((name) => style.getPropertyValue(name).trim());
  const axes = Object.keys(layout).filter((key) => /^[xy]axis/.test(key));
  const themedAxes = axes.map((key) => [key, { ...layout[key], gridcolor: line, zerolinecolor: line, linecolor: line }]);
  return {
    ...layout,
    ...Object.fromEntries(themedAxes),
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 13, color: ink },
  };
}

/** In a narrow window, names stand above their lines, inside the plot. */
function fitted(layout, narrow) {
  if (!narrow || !layout.yaxis?.tickvals) return layout;
  const { yaxis, height } = layout;
  const tickvals = yaxis.tickvals.map((value) => value - 0.42);
  const inside = { ...yaxis, tickvals, ticklabelposition: "inside", range: [yaxis.range[0], yaxis.range[1] - 0.3] };
  return { ...layout, height: height + 14 * tickvals.length, yaxis: inside };
}

/** Draw a chart once it is near the window; black, the first colour, becomes the ink of the theme. */
function drawWhenSeen(id, chart) {
  const box = document.getElementById(id);
  if (!box) return;
  const draw = async () => {
    const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
    const data = JSON.parse(JSON.stringify(chart.data).replaceAll('"#000000"', JSON.stringify(ink)));
    const narrow = box.clientWidth <= 640;
    const options = { responsive: true, displaylogo: false, displayModeBar: !narrow && "hover" };
    await (await loadPlotly()).react(box, data, themed(fitted(chart.layout, narrow)), options);
    box.dataset.drawn = "true";
  };
  box.style.minHeight = `${chart.layout.height}px`;
  new IntersectionObserver((entries, observer) => {
    if (entries.some((entry) => entry.isIntersecting)) {
      observer.disconnect();
      draw();
      dark.addEventListener("change", draw);
    }
  }, { rootMargin: "300px" }).observe(box);
}
