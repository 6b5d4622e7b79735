// What charts share: those that ECharts draws into a box, and the colours of the page.
import { LineChart, ScatterChart } from "echarts/charts";
import { DataZoomComponent, GridComponent, TooltipComponent } from "echarts/components";
import { init, use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";

use([LineChart, ScatterChart, DataZoomComponent, GridComponent, TooltipComponent, SVGRenderer]);

const drawn = new Set();

export const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const measure = document.createElement("canvas").getContext("2d");

// In pixels.
export function widthOf(text, font) {
    measure.font = font;
    return measure.measureText(text).width;
}

// A text as wide as there is space for: letters of its middle are left out, or of its end if it tells least.
export function shortened(text, most, font, { dropsEnd = false } = {}) {
    if (text.length <= most && widthOf(text, font) <= most) return text;
    const cut = (count) => {
        const head = dropsEnd ? count : Math.ceil(count / 2);
        return `${text.slice(0, head)}\u2026${text.slice(text.length - count + head)}`;
    };
    let [low, high] = [0, Math.min(text.length - 1, Math.floor(most))]; // how many letters stay
    while (low < high) {
        const middle = Math.ceil((low + high) / 2);
        if (widthOf(cut(middle), font) <= most) low = middle;
        else high = middle - 1;
    }
    return low > 1 ? cut(low) : "";
}

// A chart in a box. paint() gives it its options; listen() is called once it is there.
export class Chart {
    attach(box) {
        this.box = box;
        new ResizeObserver(() => this.draw()).observe(box);
    }

    // anew: paint it also where it is not new, and as wide as it was if it follows the width
    draw(anew) {
        if (!this.box.isConnected || !this.box.clientWidth) return;
        drawn.add(this);
        const isNew = !this.chart;
        if (isNew) {
            this.chart = init(this.box, null, { renderer: "svg" });
            this.listen?.();
        }
        const isOther = this.followsWidth && this.chart.getWidth() !== this.box.clientWidth;
        this.chart.resize();
        if (isNew || anew || isOther) this.paint();
    }
}

// Draw the charts in the colours that the page has now, and forget those that have gone.
export function redrawCharts() {
    for (const one of drawn) {
        if (one.box.isConnected) one.draw(true);
        else {
            one.chart.dispose();
            one.chart = null; // until the reader comes back
            drawn.delete(one);
        }
    }
}
