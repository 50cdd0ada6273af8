import katex from "katex";
import "katex/dist/katex.min.css";

/** Draw every formula below `place`; one that cannot be read stays as it was written. */
export function drawMath(place: HTMLElement): void {
  for (const span of place.querySelectorAll<HTMLElement>("[data-math]")) {
    const source = span.textContent ?? "";
    katex.render(source, span, {
      displayMode: span.dataset.display === "true",
      throwOnError: false,
      maxExpand: 200,
      maxSize: 20,
      trust: false,
    });
    delete span.dataset.math;
  }
}
