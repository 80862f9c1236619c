// Moves what can be moved: the slider of pictures. The page's content security policy lets this script run, and nothing else.
const slider = document.getElementById("lambda-slider");
if (slider) {
  const { pictures, lambdas, losses } = JSON.parse(document.querySelector('script[data-for="pictures"]').textContent);
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
document.documentElement.dataset.ready = "yes";
