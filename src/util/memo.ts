/**
 * Returns a function that computes once for each object, and remembers the result while the object
 * lives. `compute` must depend on nothing but its argument.
 */
export function onceForEach<K extends object, V>(compute: (key: K) => V): (key: K) => V {
  const known = new WeakMap<K, V>();
  return (key) => known.get(key) ?? known.getOrInsertComputed(key, compute);
}

/** Does the same as `onceForEach` for pairs of an object and a text. There should be few different texts, because every result is kept. */
export function onceForEachWith<K extends object, V>(
  make: (key: K, text: string) => V,
): (key: K, text: string) => V {
  const byText = onceForEach((_key: K) => new Map<string, V>());
  return (key, text) =>
    byText(key).get(text) ?? byText(key).getOrInsertComputed(text, () => make(key, text));
}

/**
 * Does the same as `onceForEach` for an object and further inputs. It computes again if an input differs from the input
 * in the last call for the same object.
 */
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

/** Returns a function that computes at its first call, and then returns the same value. */
export function onlyOnce<V>(compute: () => V): () => V {
  let known: { readonly value: V } | undefined;
  return () => {
    known ??= { value: compute() };
    return known.value;
  };
}
