// Dark or light: what the system prefers, until the driver chooses.

const KEY = "viaduct.desk.theme";

export type Theme = "dark" | "light";

export class ThemeSwitch {
  theme: Theme;
  readonly #onChange: () => void;

  constructor(button: HTMLElement, onChange: () => void) {
    this.#onChange = onChange;
    this.theme = stored() ?? (matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark");
    this.#apply();
    button.addEventListener("click", () => this.set(this.theme === "dark" ? "light" : "dark"));
  }

  set(theme: Theme): void {
    this.theme = theme;
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // The choice lasts until the page is closed.
    }
    this.#apply();
    this.#onChange();
  }

  #apply(): void {
    document.documentElement.dataset["theme"] = this.theme;
  }
}

/** Returns the value of a colour of the present theme. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function stored(): Theme | undefined {
  try {
    const value = localStorage.getItem(KEY);
    return value === "dark" || value === "light" ? value : undefined;
  } catch {
    return undefined;
  }
}
