// Draws the charts and moves what can be moved. The page's content security policy lets this script and Vega-Lite run, and
// nothing else; Vega's expressions are interpreted (ast: true), so that no text is ever evaluated as code.
const read = (name) => JSON.parse(document.querySelector(`script[data-for="${name}"]`).textContent);
const options = {
  renderer: "svg",
  ast: true,
  actions: { export: true, source: false, compiled: false, editor: false },
  tooltip: { theme: "custom" },
};
const views = [];

async function draw() {
  for (const plot of document.querySelectorAll(".plot")) {
    try {
      const { view } = await window.vegaEmbed(plot, read(plot.id), { ...options, downloadFileName: plot.id });
      views.push(view);
    } catch (error) {
      plot.textContent = `This chart could not be drawn: ${error.message}`;
      plot.classList.add("missing");
    }
  }
}

function connectSignals() {
  for (const control of document.querySelectorAll("[data-signal]")) {
    const set = () => {
      const value = control.type === "checkbox" ? control.checked : Number(control.value);
      for (const view of views) {
        try {
          view.signal(control.dataset.signal, value).runAsync();
        } catch {
          // a chart without this parameter
        }
      }
    };
    control.addEventListener("change", set);
  }
}

function connectSlider() {
  const slider = document.getElementById("lambda-slider");
  if (!slider) return;
  const { pictures, lambdas, losses } = read("pictures");
  const [name, words] = [document.querySelector("output b"), document.querySelector("output span")];
  const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(1)}%`);
  const show = () => {
    const k = Number(slider.value);
    name.textContent = lambdas[k];
    words.textContent = losses[k];
    slider.setAttribute("aria-valuetext", lambdas[k]);
    pictures.forEach((picture, i) => {
      document.querySelector(`[data-picture="${i}"]`).src = picture.maps[picture.which[k]];
      document.querySelector(`[data-right="${i}"]`).textContent = percent(picture.right[k]);
    });
  };
  slider.addEventListener("input", show);
}

addEventListener("keydown", (event) => {
  if (event.key === "Escape" && document.activeElement?.classList.contains("term")) document.activeElement.blur();
});
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => (part.open = true)));
connectSlider();
await draw();
connectSignals();
document.documentElement.dataset.ready = "yes";
