/** Encodes a world's state as text, two characters for each number. */

/** All members are numbers of values. */
export interface State {
  /** The index in the times of the configuration. */
  readonly time: number;
  readonly plan: number;
  readonly faults: number;
  readonly nodes: readonly number[];
  /** The requests in flight to the node's object, by place. */
  readonly requests: readonly number[];
}

export function pack({ time, plan, faults, nodes, requests }: State): string {
  const numbers = [time, plan, faults, ...nodes, ...requests];
  return String.fromCharCode(...numbers.flatMap((number) => [number >>> 16, number & 0xffff]));
}

export function unpack(text: string): State {
  const [time = 0, plan = 0, faults = 0, ...rest] = Array.from(
    { length: text.length / 2 },
    (_, at) => text.charCodeAt(2 * at) * 0x1_00_00 + text.charCodeAt(2 * at + 1),
  );
  return {
    time,
    plan,
    faults,
    nodes: rest.slice(0, rest.length / 2),
    requests: rest.slice(rest.length / 2),
  };
}
