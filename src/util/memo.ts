/** Computes once per object, and remembers while the object lives. `compute` must depend on its argument only. */
export function onceForEach<K extends object, V>(compute: (key: K) => V): (key: K) => V {
  const known = new WeakMap<K, V>();
  return (key) => known.get(key) ?? known.getOrInsertComputed(key, compute);
}

/** The same by object and text: for few texts. */
export function onceForEachWith<K extends object, V>(
  make: (key: K, text: string) => V,
): (key: K, text: string) => V {
  const byText = onceForEach((_key: K) => new Map<string, V>());
  return (key, text) =>
    byText(key).get(text) ?? byText(key).getOrInsertComputed(text, () => make(key, text));
}
