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

/** The same by object and further inputs: computes anew when an input is another one than at the last call for that object. */
export function onceForEachAmong<K extends object, I, V>(
  compute: (key: K, inputs: readonly I[]) => V,
): (key: K, inputs: readonly I[]) => V {
  const known = new WeakMap<K, { readonly inputs: readonly I[]; readonly value: V }>();
  return (key, inputs) => {
    const last = known.get(key);
    const isSame =
      last?.inputs.length === inputs.length &&
      last.inputs.every((input, index) => input === inputs[index]);
    if (last && isSame) return last.value;
    const value = compute(key, inputs);
    known.set(key, { inputs, value });
    return value;
  };
}
