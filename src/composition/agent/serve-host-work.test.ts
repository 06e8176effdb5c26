/** Tests that `workForValue` has at most one run at a time, and that this run works for the current value. */
import { afterEach, expect, test, vi } from 'vitest';
import { aborted } from '../../util/waits.ts';
import { workForValue } from './serve-host.ts';

class Cell {
  readonly #listeners = new Set<() => void>();
  #value: string | undefined;

  constructor(value?: string) {
    this.#value = value;
  }

  readonly current = (): string | undefined => this.#value;

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get listening(): number {
    return this.#listeners.size;
  }

  set(value: string | undefined): void {
    this.#value = value;
    for (const listener of this.#listeners) listener();
  }
}

let stop = new AbortController();
afterEach(() => {
  stop.abort();
  stop = new AbortController();
});

function start(cell: Cell): { log: string[]; done: Promise<void> } {
  const log: string[] = [];
  const done = workForValue(
    cell,
    cell.current,
    async (value, abort) => {
      log.push(`+${value}`);
      await aborted(abort);
      log.push(`-${value}`);
      abort.throwIfAborted();
    },
    stop.signal,
  );
  return { log, done };
}

test('each value has its run, and nothing has none', async () => {
  const cell = new Cell();
  const { log, done } = start(cell);
  for (const [value, expected] of [
    ['a', '+a'],
    ['a', '+a'],
    ['b', '+b'],
    [undefined, '-b'],
    ['c', '+c'],
  ] as const) {
    cell.set(value);
    await vi.waitFor(() => expect(log.at(-1)).toBe(expected), 60_000);
  }
  stop.abort();
  await done;
  expect(log).toEqual(['+a', '-a', '+b', '-b', '+c', '-c']);
  expect(cell.listening).toBe(0);
});

test('a run that fails ends all, one that is over is not repeated', async () => {
  const broken = new Cell('a');
  const failing = workForValue(
    broken,
    broken.current,
    async () => await Promise.reject(new Error('broken')),
    stop.signal,
  );
  await expect(failing).rejects.toThrow('broken');
  const cell = new Cell('a');
  const work = vi.fn(async () => await Promise.resolve());
  const done = workForValue(cell, cell.current, work, stop.signal);
  cell.set('a');
  cell.set('b');
  await vi.waitFor(() => expect(work).toHaveBeenCalledTimes(2), 60_000);
  stop.abort();
  await done;
});
