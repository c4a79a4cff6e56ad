// Returns the texts on the page whose contrast to their background is below 4.5 (WCAG 2.2), with the contrast.
(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const over = (below, color) => {
    if (color === "rgba(0, 0, 0, 0)") return below;
    canvas.fillStyle = `rgb(${below.join(" ")})`;
    canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const grounds = new Map([[null, [255, 255, 255]]]);
  const ground = (node) => {
    if (!grounds.has(node)) {
      const style = getComputedStyle(node), below = over(ground(node.parentElement), style.backgroundColor);
      const drawn = /linear-gradient\((.+?), \1\)/.exec(style.backgroundImage);
      grounds.set(node, drawn ? over(below, drawn[1]) : below);
    }
    return grounds.get(node);
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const seen = new Map();
  for (const node of document.querySelectorAll("body *")) {
    const texts = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!texts || node.closest("script, style, option, title") || !node.checkVisibility()) continue;
    const below = ground(node), style = getComputedStyle(node);
    const ink = over(below, node.closest("svg") ? style.fill : style.color);
    const [a, b] = [light(ink), light(below)].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) seen.set(`${node.tagName} ${node.getAttribute("class")} ${contrast.toFixed(2)}`, node.textContent.slice(0, 40));
  }
  return [...seen];
})()
