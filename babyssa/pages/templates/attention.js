// The attention page: the map of one head over one text, and small maps of all heads.

const facts = JSON.parse(document.getElementById("facts").textContent);
const find = (selector) => document.querySelector(selector);
const escaped = (value) => String(value).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
const percent = (weight) => (100 * weight).toFixed(Math.abs(weight) < 0.0995 ? 1 : 0).replace("-", "−");
const [BLUE, ORANGE] = [[61, 143, 196], [213, 94, 0]];
const loaded = new Map();

/** The weights of all heads over a text as shares of the largest, head by head, query by query. */
async function load(number) {
  if (!loaded.has(number)) loaded.set(number, new Int16Array(await unpack(`weights-${number}`)));
  return loaded.get(number);
}

function draw(canvas, shares, n) {
  canvas.width = canvas.height = n;
  const image = new ImageData(n, n);
  shares.forEach((share, k) => {
    image.data.set([...(share < 0 ? ORANGE : BLUE), (255 * Math.abs(share)) / 32767], 4 * k);
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
}

async function show() {
  const number = Number(find(".text").value);
  const place = Number(find(".place").value);
  const { words, largest, signed } = facts.texts[number];
  const n = words.length;
  const weights = await load(number);
  const of = (head) => weights.subarray(head * n * n, (head + 1) * n * n);
  const { layer, head } = facts.heads[place];
  const chosen = of(place);
  const names = words.map(escaped);
  find(".map caption").textContent = `Weights (%) of layer ${layer}, head ${head}`;
  find(".map thead").innerHTML =
    `<tr><th scope="col">reads</th>${names.map((name) => `<th scope="col"><span>${name}</span></th>`).join("")}</tr>`;
  find(".map tbody").innerHTML = names
    .map((name, query) => {
      const cells = [...chosen.subarray(query * n, (query + 1) * n)].map((stored) => {
        const share = stored / 32767;
        const shade = `--shade: ${Math.round(60 * Math.abs(share))}%`;
        return `<td class="number token${share < 0 ? " below" : ""}" style="${shade}">${percent(share * largest)}</td>`;
      });
      return `<tr><th scope="row">${name}</th>${cells.join("")}</tr>`;
    })
    .join("");
  find(".largest").textContent = `${percent(largest)}%`;
  find(".negative").hidden = !signed;
  find(".status").textContent = `Layer ${layer}, head ${head}`;
  for (const button of document.querySelectorAll(".overview button")) {
    draw(button.firstElementChild, of(Number(button.dataset.place)), n);
    button.setAttribute("aria-pressed", String(Number(button.dataset.place) === place));
  }
  document.querySelectorAll("table.heads").forEach((table, k) => {
    table.hidden = k !== number;
    for (const [k, row] of [...table.tBodies[0].rows].entries()) row.classList.toggle("shown", k === place);
  });
}

find(".filters").addEventListener("submit", (event) => event.preventDefault());
for (const select of document.querySelectorAll(".filters select")) select.addEventListener("change", show);
find(".overview").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  find(".place").value = button.dataset.place;
  show();
});
for (const [name, chart] of Object.entries(facts.charts)) drawWhenSeen(`history-${name}`, chart);
await show();
document.documentElement.dataset.ready = "true";
