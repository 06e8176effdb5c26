/** The same by object and text: for few texts. */
export function onceForEachWith<K extends object, V>(
  compute: (key: K, text: string) => V,
): (key: K, text: string) => V {
  const byText = onceForEach((_key: K) => new Map<string, V>());
  return (key, text) => {
    const known = byText(key);
    const value = known.get(text) ?? compute(key, text);
    known.set(text, value);
    return value;
  };
}

/** Computes once per object, and remembers while the object lives. `compute` must depend on its argument only. */
export function onceForEach<K extends object, V>(compute: (key: K) => V): (key: K) => V {
  const known = new WeakMap<K, { readonly value: V }>();
  return (key) => {
    const found = known.get(key);
    if (found) return found.value;
    const value = compute(key);
    known.set(key, { value });
    return value;
  };
}
