// The results page: tables that sort, charts, and the browser of pairs.

const everything = JSON.parse(document.getElementById("facts").textContent);
const { default: DataTable } = await import(await urlOf("datatables"));
const escaped = (value) => String(value).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
const signed = (value) => (value > 0 ? "+" : value < 0 ? "−" : "") + Math.abs(value).toFixed(2);

for (const table of document.querySelectorAll("table.sortable"))
  new DataTable(table, { paging: false, info: false, order: [], layout: { topStart: null, topEnd: "search" } });
for (const [id, { charts }] of Object.entries(everything))
  for (const [name, chart] of Object.entries(charts)) drawWhenSeen(`${id}-${name}`, chart);

/** Decides whether a row of the pairs matches what was asked, by table. */
const filters = new Map();
DataTable.ext.search.push((settings, _, index, row) => filters.get(settings.nTable)?.(row) ?? true);

/** The pairs of one section: a part of the page for each paradigm, unpacked when it is asked for. */
async function browse(section, facts) {
  const find = (selector) => section.querySelector(selector);
  const paradigms = new Map();

  /** Sentences and margins of a paradigm; margins[model][pair] is in hundredths of a nat, 0 only for a tie. */
  async function load(number) {
    if (!paradigms.has(number)) {
      const { n } = facts.paradigms[number];
      const id = `${section.id}-${number}`;
      const [sentences, buffer] = await Promise.all([text(`sentences-${id}`), unpack(`margins-${id}`)]);
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
        return { number, i, good: lines[2 * i], bad: lines[2 * i + 1], cells };
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
    { title: "paradigm", data: (row) => escaped(facts.paradigms[row.number].name) },
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

  const number = (selector, otherwise) => (find(selector).value === "" ? otherwise : Number(find(selector).value));
  const wanted = () => ({
    variant: Number(find(".variant").value),
    decided: find(".decided").value,
    low: number(".low", -Infinity),
    high: number(".high", Infinity),
  });
  let filter;

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

  find(".paradigm").innerHTML =
    facts.paradigms.map((p, k) => `<option value="${k}">${escaped(p.name)} (${p.n})</option>`).join("") +
    (facts.paradigms.length > 1 ? '<option value="all">all paradigms</option>' : "");
  find(".variant").innerHTML = facts.variants.map((v, k) => `<option value="${k}">${escaped(v)}</option>`).join("");
  if (facts.variants.length > 1) find(".variant").value = "1";
  filter = wanted();
  filters.set(find("table.browser"), matches);

  const table = new DataTable(find("table.browser"), {
    columns, data: [], order: [], deferRender: true, pageLength: 25, autoWidth: false,
    lengthMenu: [10, 25, 100], layout: { topStart: "pageLength", topEnd: "search" },
    language: { search: "search sentences", lengthMenu: "_MENU_ pairs a page", emptyTable: "loading", zeroRecords: "no pair like that" },
  });

  async function show() {
    const chosen = find(".paradigm").value;
    find(".status").textContent = "loading";
    const numbers = chosen === "all" ? facts.paradigms.map((_, k) => k) : [Number(chosen)];
    const rows = (await Promise.all(numbers.map(load))).flatMap((loaded) => loaded.rows);
    table.column(1).visible(chosen === "all");
    table.clear().rows.add(rows).draw();
  }

  table.on("draw", () => {
    const { recordsDisplay, recordsTotal } = table.page.info();
    find(".status").textContent = `${recordsDisplay.toLocaleString("en")} of ${recordsTotal.toLocaleString("en")} pairs`;
  });

  async function details(row) {
    const { margins } = await load(row.number);
    const decision = (margin) =>
      margin > 0 ? '<span class="right">right</span>' : margin < 0 ? '<span class="wrong">wrong</span>' : "tie";
    const lines = facts.models.map(
      (model, m) =>
        `<tr><th scope="row">${escaped(model.variant)}</th><td class="number">${escaped(model.seed)}</td>` +
        `<td>${decision(margins[m][row.i])}</td><td class="number">${signed(margins[m][row.i] / 100)}</td></tr>`,
    );
    const box = document.createElement("div");
    box.className = "details";
    box.innerHTML =
      "<table><caption>What each model decided</caption><thead><tr>" +
      '<th scope="col">variant</th><th scope="col" class="number">seed</th><th scope="col">decision</th>' +
      `<th scope="col" class="number">margin (nats)</th></tr></thead><tbody>${lines.join("")}</tbody></table>`;
    return box;
  }

  find("table.browser").addEventListener("click", async (event) => {
    const button = event.target.closest("button.open");
    if (!button) return;
    const row = table.row(button.closest("tr"));
    const open = !row.child.isShown();
    if (open) row.child(await details(row.data())).show();
    else row.child.hide();
    button.setAttribute("aria-expanded", String(open));
    button.textContent = open ? "−" : "+";
  });

  find(".filters").addEventListener("submit", (event) => event.preventDefault());
  find(".paradigm").addEventListener("change", show);
  for (const selector of [".variant", ".decided", ".low", ".high"])
    find(selector).addEventListener("input", () => {
      filter = wanted();
      table.draw();
    });
  await show();
}

for (const section of document.querySelectorAll("section[data-kind=pairs]"))
  await browse(section, everything[section.id]);
document.documentElement.dataset.ready = "true";
