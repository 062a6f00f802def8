"use strict";
(() => {
  const root = document.documentElement, themes = ["system", "light", "dark"];
  const kept = () => { try { return localStorage.getItem("kernel-audit-theme"); } catch { return null; } };
  let theme = themes.includes(kept()) ? kept() : "system";

  const paint = () => {
    if (theme === "system") delete root.dataset.theme; else root.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (!button) return;
    button.textContent = `◐ ${theme}`;
    button.setAttribute("aria-label", theme === "system" ? "Colours: as on the system" : `Colours: ${theme}`);
  };
  const turn = () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try { localStorage.setItem("kernel-audit-theme", theme); } catch { /* a page of a file may keep nothing */ }
    paint();
  };
  paint(); // before the first paint

  const open = () => { // a link to a case opens it, and what is filtered away comes back
    const raw = location.hash.slice(1);
    let named = raw;
    try { named = decodeURIComponent(raw); } catch { /* not percent-encoded */ }
    const target = raw && (document.getElementById(raw) || document.getElementById(named) ||
      document.getElementById(named.split("=").map(encodeURIComponent).join("=")));
    if (!target) return;
    for (let each = target; each; each = each.parentElement) {
      if (each.tagName === "DETAILS") each.open = true;
      each.hidden = false;
    }
    target.scrollIntoView();
    if (target.hasAttribute("tabindex")) target.focus({ preventScroll: true });
  };

  const step = (by) => {
    const all = [...document.querySelectorAll("article.failure")].filter((each) => !each.hidden);
    if (!all.length) return;
    const at = all.indexOf(document.activeElement?.closest("article.failure"));
    const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : (at + by + all.length) % all.length];
    next.tabIndex = -1;
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "start" });
  };

  const filters = () => {
    const form = document.getElementById("filters"), block = document.getElementById("data");
    if (!form || !block) return;
    const data = JSON.parse(block.textContent);
    const texts = data.cases.map((one) => one.id.toLowerCase());
    const cases = [...document.querySelectorAll("details.case")], articles = [...document.querySelectorAll("article.failure")];
    const apply = () => {
      const words = document.getElementById("search").value.toLowerCase().split(/\s+/).filter(Boolean);
      const chosen = document.getElementById("variant").value;
      const states = new Set([...form.querySelectorAll("input:checked")].map((each) => each.value));
      const matches = (text) => words.every((word) => text.includes(word));
      let shown = 0;
      data.cases.forEach((one, at) => {
        const cells = chosen === "" ? one.cells : [one.cells[chosen]];
        cases[at].hidden = !(matches(texts[at]) && cells.some((state) => states.has(state)));
        shown += !cases[at].hidden;
      });
      data.findings.forEach((one, at) => {
        const text = `${one.case} ${one.check}`.toLowerCase();
        articles[at].hidden = !(matches(text) && states.has(one.verdict) && (chosen === "" || one.variant === data.variants[chosen]));
      });
      document.getElementById("count").textContent = `${shown} of ${data.cases.length} cases shown`;
    };
    form.hidden = false;
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    apply();
  };

  const rows = () => { // the list of records: a row that matches all fields, and the groups that have one
    const form = document.getElementById("rows");
    if (!form) return;
    const all = [...document.querySelectorAll("tr[data-row]")], groups = [...document.querySelectorAll("section.shape, section.device")];
    const texts = all.map((row) => `${row.innerText} ${row.closest("section.device").querySelector("h2").innerText}`.toLowerCase());
    const apply = () => {
      const words = document.getElementById("search").value.toLowerCase().split(/\s+/).filter(Boolean);
      const chosen = [...form.querySelectorAll("select")].filter((each) => each.value !== "");
      all.forEach((row, at) => {
        row.hidden = !(words.every((word) => texts[at].includes(word)) && chosen.every((each) => row.dataset[each.name] === each.value));
      });
      for (const each of groups) each.hidden = !each.querySelector("tr[data-row]:not([hidden])");
      document.getElementById("count").textContent = `${all.filter((row) => !row.hidden).length} of ${all.length} records shown`;
    };
    form.hidden = false;
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    apply();
  };

  const help = () => { const dialog = document.getElementById("help"); if (!dialog.open) dialog.showModal(); };

  const press = (event) => {
    const field = event.target.closest?.("input, select, textarea");
    if (event.key === "Escape" && field) field.blur();
    if (field || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const search = document.getElementById("search");
    const does = { j: () => step(1), k: () => step(-1), t: turn, "?": help, "/": () => { search?.focus(); search?.select(); } }[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  };

  document.addEventListener("DOMContentLoaded", () => {
    paint();
    document.querySelector(".switches").hidden = false;
    document.getElementById("theme").addEventListener("click", turn);
    document.getElementById("keys").addEventListener("click", help);
    document.addEventListener("keydown", press);
    for (const button of document.querySelectorAll(".copy")) {
      button.hidden = !navigator.clipboard;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
        button.textContent = "copied";
        setTimeout(() => { button.textContent = "copy"; }, 2000);
      });
    }
    filters();
    rows();
    open();
    addEventListener("hashchange", open);
  });
})();
