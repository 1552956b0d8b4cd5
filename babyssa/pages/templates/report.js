// The results page: tables that sort, charts, and the browser of pairs.

const facts = JSON.parse(document.getElementById("facts").textContent);
const { default: DataTable } = await import(await urlOf("datatables"));
const byId = (id) => document.getElementById(id);
const escaped = (value) => String(value).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
const signed = (value) => (value > 0 ? "+" : value < 0 ? "−" : "") + Math.abs(value).toFixed(2);

for (const table of ["#estimates", "#contrasts"].map((id) => document.querySelector(id)).filter(Boolean))
  new DataTable(table, { paging: false, info: false, order: [], layout: { topStart: null, topEnd: "search" } });
for (const [id, chart] of Object.entries(facts.charts)) drawWhenSeen(`chart-${id}`, chart);

// --- the pairs: one part of the page for each paradigm, unpacked when it is asked for

const paradigms = new Map();

/** Sentences and margins of a paradigm; margins[model][pair] is in nats, rounded to a hundredth but never to 0. */
async function load(number) {
  if (!paradigms.has(number)) {
    const { n } = facts.paradigms[number];
    const [sentences, buffer] = await Promise.all([text(`sentences-${number}`), unpack(`margins-${number}`)]);
    const lines = sentences.split("\n");
    const all = new Int16Array(buffer);
    const margins = facts.models.map((_, m) => all.subarray(m * n, (m + 1) * n));
    const rows = Array.from({ length: n }, (_, i) => {
      const cells = facts.members.map((models) => {
        let right = 0, sum = 0;
        for (const m of models) {
          const margin = margins[m][i];
          right += margin > 0 ? 1 : margin === 0 ? 0.5 : 0;
          sum += margin;
        }
        return { right, of: models.length, margin: Math.round(sum / models.length) / 100 };
      });
      return { paradigm: number, i, good: lines[2 * i], bad: lines[2 * i + 1], cells };
    });
    paradigms.set(number, { margins, rows });
  }
  return paradigms.get(number);
}

const sentence = (row) =>
  `<span class="good"><span aria-hidden="true">✓ </span>${escaped(row.good)}</span><br>` +
  `<span class="bad"><span aria-label="ungrammatical">✗ </span>${escaped(row.bad)}</span>`;

const columns = [
  {
    title: "details", data: null, orderable: false, searchable: false, width: "2.5rem",
    render: () => '<button type="button" class="open" aria-expanded="false" aria-label="What each model decided">+</button>',
  },
  { title: "paradigm", data: (row) => escaped(facts.paradigms[row.paradigm].name) },
  { title: "pair", data: null, render: (_, type, row) => (type === "display" ? sentence(row) : `${row.good} ${row.bad}`) },
  ...facts.variants.map((variant, v) => ({
    title: escaped(variant), data: null, searchable: false, className: "number", type: "num",
    render: (_, type, row) => {
      const { right, of, margin } = row.cells[v];
      if (type !== "display") return margin;
      const kind = right === of ? "right" : right === 0 ? "wrong" : "";
      return `<span class="${kind}">${right}/${of}</span><br><small>${signed(margin)}</small>`;
    },
  })),
];

const wanted = () => ({
  variant: Number(byId("variant").value),
  decided: byId("decided").value,
  low: byId("low").value === "" ? -Infinity : Number(byId("low").value),
  high: byId("high").value === "" ? Infinity : Number(byId("high").value),
});

let filter = wanted();

function matches({ cells }) {
  const { right, of, margin } = cells[filter.variant];
  const share = right / of;
  const base = cells[0].right / cells[0].of;
  const decided = {
    "": true, right: share === 1, wrong: share === 0, split: share > 0 && share < 1,
    better: share > base, worse: share < base,
  }[filter.decided];
  return decided && margin >= filter.low && margin <= filter.high;
}

DataTable.ext.search.push((settings, _, index, row) => settings.nTable.id !== "browser" || matches(row));

byId("paradigm").innerHTML =
  facts.paradigms.map((p, k) => `<option value="${k}">${escaped(p.name)} (${p.n})</option>`).join("") +
  (facts.paradigms.length > 1 ? '<option value="all">all paradigms</option>' : "");
byId("variant").innerHTML = facts.variants.map((v, k) => `<option value="${k}">${escaped(v)}</option>`).join("");
if (facts.variants.length > 1) byId("variant").value = "1";
filter = wanted();

const table = new DataTable("#browser", {
  columns, data: [], order: [], deferRender: true, pageLength: 25, autoWidth: false,
  lengthMenu: [10, 25, 100], layout: { topStart: "pageLength", topEnd: "search" },
  language: { search: "search sentences", lengthMenu: "_MENU_ pairs a page", emptyTable: "loading", zeroRecords: "no pair like that" },
});

async function show() {
  const chosen = byId("paradigm").value;
  byId("status").textContent = "loading";
  const numbers = chosen === "all" ? facts.paradigms.map((_, k) => k) : [Number(chosen)];
  const rows = (await Promise.all(numbers.map(load))).flatMap((loaded) => loaded.rows);
  table.column(1).visible(chosen === "all");
  table.clear().rows.add(rows).draw();
}

table.on("draw", () => {
  const { recordsDisplay, recordsTotal } = table.page.info();
  byId("status").textContent = `${recordsDisplay.toLocaleString("en")} of ${recordsTotal.toLocaleString("en")} pairs`;
});

// --- what each model decided, and the score of each token

/** The model's tokens of both sentences with their scores, or null where the page has none. */
async function tokensOf(row, model) {
  const place = facts.token_models.indexOf(model);
  if (place < 0) return null;
  const number = row.paradigm;
  const loaded = await load(number);
  loaded.tokens ??= Promise.all([text(`tokens-${number}`), unpack(`token-scores-${number}`)]).then(([words, scores]) => {
    const pieces = JSON.parse(words);
    const ends = [0];
    for (const one of pieces) ends.push(ends.at(-1) + one.length);
    return { pieces, ends, scores: new Int16Array(scores) };
  });
  const { pieces, ends, scores } = await loaded.tokens;
  return [2 * row.i, 2 * row.i + 1].map((s) =>
    pieces[s].map((piece, k) => [piece, scores[place * ends.at(-1) + ends[s] + k] / 100]),
  );
}

const shaded = (tokens) =>
  tokens
    .map(([piece, score]) => {
      const shade = Math.min(-score / 12, 1) * 0.75;
      return `<span class="token" style="--shade:${shade.toFixed(3)}">${escaped(piece)}<small>${signed(score)}</small></span>`;
    })
    .join("");

async function details(row) {
  const { margins } = await load(row.paradigm);
  const box = document.createElement("div");
  box.className = "details";
  const decision = (margin) =>
    margin > 0 ? '<span class="right">right</span>' : margin < 0 ? '<span class="wrong">wrong</span>' : "tie";
  const lines = facts.models.map(
    (model, m) =>
      `<tr><th scope="row">${escaped(model.variant)}</th><td class="number">${escaped(model.seed)}</td>` +
      `<td>${decision(margins[m][row.i])}</td><td class="number">${signed(margins[m][row.i] / 100)}</td></tr>`,
  );
  box.innerHTML =
    '<div class="tokens" aria-live="polite"></div><table><caption>What each model decided</caption><thead><tr>' +
    '<th scope="col">variant</th><th scope="col" class="number">seed</th><th scope="col">decision</th>' +
    `<th scope="col" class="number">margin (nats)</th></tr></thead><tbody>${lines.join("")}</tbody></table>`;
  if (facts.token_models.length) {
    const select = document.createElement("select");
    select.innerHTML = facts.token_models
      .map((m) => `<option value="${m}">${escaped(facts.models[m].variant)}, seed ${escaped(facts.models[m].seed)}</option>`)
      .join("");
    const label = document.createElement("label");
    label.append("score of each token (nats) by", select);
    box.prepend(label);
    const fill = async () => {
      const [good, bad] = await tokensOf(row, Number(select.value));
      box.querySelector(".tokens").innerHTML = `<div>✓ ${shaded(good)}</div><div>✗ ${shaded(bad)}</div>`;
    };
    select.addEventListener("change", fill);
    await fill();
  }
  return box;
}

byId("browser").addEventListener("click", async (event) => {
  const button = event.target.closest("button.open");
  if (!button) return;
  const row = table.row(button.closest("tr"));
  const open = !row.child.isShown();
  if (open) row.child(await details(row.data())).show();
  else row.child.hide();
  button.setAttribute("aria-expanded", String(open));
  button.textContent = open ? "−" : "+";
});

byId("filters").addEventListener("submit", (event) => event.preventDefault());
byId("paradigm").addEventListener("change", show);
for (const id of ["variant", "decided", "low", "high"])
  byId(id).addEventListener("input", () => {
    filter = wanted();
    table.draw();
  });

await show();
document.documentElement.dataset.ready = "true";
