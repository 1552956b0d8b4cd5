// The results page: tables that sort, charts, and the browser of pairs.

const everything = JSON.parse(document.getElementById("facts").textContent);
const { default: DataTable } = await import(await urlOf("datatables"));
const escaped = (value) => String(value).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
const minus = (value, digits) => value.toFixed(digits).replace("-", "−");
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
  const tokens = new Map();

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

  /** The scored tokens of a paradigm's sentences as a variant reads them, or null where they are not known. */
  async function loadTokens(number, variant) {
    const key = `${section.id}-${number}-${variant}`;
    if (facts.spans[variant] === null) return null;
    if (!tokens.has(key)) {
      const of = `spans-${section.id}-${number}-${facts.spans[variant]}`;
      const [spans, scores] = await Promise.all([unpack(of), unpack(`tokens-${key}`)]);
      const [sentences, all] = [2 * facts.paradigms[number].n, new Uint32Array(spans)];
      const counts = all.subarray(0, sentences);
      const begins = new Uint32Array(sentences);
      for (let k = 1; k < sentences; k++) begins[k] = begins[k - 1] + counts[k - 1];
      const [starts, lengths] = [all.subarray(sentences, 2 * sentences), all.subarray(2 * sentences)];
      tokens.set(key, { counts, begins, starts, lengths, scores: new Uint8Array(scores) });
    }
    return tokens.get(key);
  }

  /** A sentence cut into its tokens, each with its score; what is not scored has none. */
  function cut(sentence, { counts, begins, starts, lengths, scores }, place) {
    const letters = Array.from(sentence);
    let at = starts[place];
    const pieces = [{ text: letters.slice(0, at).join("") }];
    for (let k = 0; k < counts[place]; k++) {
      const text = letters.slice(at, (at += lengths[begins[place] + k])).join("");
      const special = facts.specials && (k === 0 ? "start" : k === counts[place] - 1 ? "end" : "");
      pieces.push({ text, name: text.trim() || special || "…", score: -scores[begins[place] + k] / 10 });
    }
    return [...pieces, { text: letters.slice(at).join("") }];
  }

  const shade = (score) => `style="--shade: ${Math.round(6 * Math.min(10, -score))}%"`;

  function shaded(sentence, row, bad) {
    const known = tokens.get(`${section.id}-${row.number}-${filter.variant}`);
    if (!known) return escaped(sentence);
    return cut(sentence, known, 2 * row.i + bad)
      .map(({ text, score }) => {
        if (score === undefined || !text) return escaped(text);
        const word = text.trimStart();
        const space = text.slice(0, text.length - word.length);
        return `${space}<span class="token" ${shade(score)} title="${minus(score, 1)}">${escaped(word)}</span>`;
      })
      .join("");
  }

  const sentence = (row) =>
    `<span class="good"><span aria-hidden="true">✓ </span>${shaded(row.good, row, 0)}</span><br>` +
    `<span class="bad"><span aria-label="ungrammatical">✗ </span>${shaded(row.bad, row, 1)}</span>`;

  const decision = (margin) =>
    margin > 0 ? '<span class="right">right</span>' : margin < 0 ? '<span class="wrong">wrong</span>' : "tie";

  const columns = [
    {
      title: "details", data: null, orderable: false, searchable: false, width: "2.5rem",
      render: () => '<button type="button" class="open" aria-expanded="false" aria-label="What each model decided">+</button>',
    },
    { title: "paradigm", data: (row) => escaped(facts.paradigms[row.number].name) },
    { title: "pair", className: "sentences", data: null, render: (_, type, row) => (type === "display" ? sentence(row) : `${row.good} ${row.bad}`) },
    ...facts.variants.map((variant, v) => ({
      title: escaped(variant), data: null, searchable: false, className: "number", type: "num",
      render: (_, type, row) => {
        const { right, of, margin } = row.cells[v];
        if (type !== "display") return margin;
        if (of === 1) return `${decision(right - 0.5)}<br><small>${signed(margin)}</small>`;
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
    await Promise.all(numbers.map((each) => loadTokens(each, filter.variant)));
    const scale = find(".scale .of");
    if (scale) scale.textContent = `Shade, as ${facts.variants[filter.variant]} reads${average(filter.variant)}:`;
    table.column(1).visible(chosen === "all");
    table.clear().rows.add(rows).draw();
  }

  table.on("draw", () => {
    const { recordsDisplay, recordsTotal } = table.page.info();
    find(".status").textContent = `${recordsDisplay.toLocaleString("en")} of ${recordsTotal.toLocaleString("en")} pairs`;
  });

  const average = (variant) => (facts.members[variant].length > 1 ? ", mean over its seeds" : "");

  /** A table of a sentence's tokens, a line for each variant that reads these tokens. */
  function tokenTable(row, bad, known) {
    const columns = cut(bad ? row.bad : row.good, known[0].tokens, 2 * row.i + bad).filter((piece) => piece.name);
    const lines = known.map(({ variant, tokens }) => {
      const scores = cut(bad ? row.bad : row.good, tokens, 2 * row.i + bad).filter((piece) => piece.name);
      const sum = scores.reduce((total, { score }) => total + score, 0);
      const cells = scores.map(({ score }) => `<td class="number token" ${shade(score)}>${minus(score, 1)}</td>`);
      const last = { sum, mean: sum / scores.length }[facts.reduction];
      const total = last === undefined ? "" : `<td class="number">${minus(last, 1)}</td>`;
      return `<tr><th scope="row">${escaped(facts.variants[variant])}${average(variant)}</th>${cells.join("")}${total}</tr>`;
    });
    const heads = columns.map(({ name }) => `<th scope="col" class="number">${escaped(name)}</th>`).join("");
    const last = ["sum", "mean"].includes(facts.reduction) ? `<th scope="col" class="number">${facts.reduction}</th>` : "";
    return (
      `<div class="scroll"><table class="tokens"><caption>${bad ? "✗ Ungrammatical" : "✓ Grammatical"} sentence: ` +
      "log-probability of each token (nats)</caption>" +
      `<thead><tr><th scope="col">variant</th>${heads}${last}</tr></thead><tbody>${lines.join("")}</tbody></table></div>`
    );
  }

  async function details(row) {
    const { margins } = await load(row.number);
    const all = await Promise.all(facts.variants.map((_, variant) => loadTokens(row.number, variant)));
    const read = all.map((tokens, variant) => ({ variant, tokens })).filter(({ tokens }) => tokens);
    const tables = [...new Set(read.map(({ variant }) => facts.spans[variant]))].flatMap((own) => {
      const known = read.filter(({ variant }) => facts.spans[variant] === own);
      return [0, 1].map((bad) => tokenTable(row, bad, known));
    });
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
      `<th scope="col" class="number">margin (nats)</th></tr></thead><tbody>${lines.join("")}</tbody></table>${tables.join("")}`;
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
  find(".variant").addEventListener("change", () => {
    filter = wanted();
    show();
  });
  for (const selector of [".decided", ".low", ".high"])
    find(selector).addEventListener("input", () => {
      filter = wanted();
      table.draw();
    });
  await show();
}

for (const section of document.querySelectorAll("section[data-kind=pairs]"))
  await browse(section, everything[section.id]);
document.documentElement.dataset.ready = "true";
