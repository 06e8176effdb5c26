/** Owns remembering what was computed from an object that never changes, for as long as the object lives. */

/** `compute` must depend on nothing but its argument. */
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
