/** Reads quantities of Kubernetes, such as `100m`, `1.5` or `64Mi`. */

const DECIMAL = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
};
const BINARY = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 };
const FACTORS: ReadonlyMap<string, number> = new Map(Object.entries({ ...DECIMAL, ...BINARY }));

/** Returns the number of units, such as cores or bytes; undefined if the text is no quantity. */
export function parseQuantity(text: string): number | undefined {
  const [, number = '', exponent, suffix = ''] =
    /^([+-]?[\d.]+)(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i))?$/.exec(text) ?? [];
  const value = /\d/.test(number) ? Number(`${number}${exponent ?? ''}`) : Number.NaN;
  const factor = FACTORS.get(suffix);
  return Number.isNaN(value) || factor === undefined ? undefined : value * factor;
}
