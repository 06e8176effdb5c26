/** Remembers the last finished signals, so that a copy of one that comes back is not obeyed. */
import { createHash } from 'node:crypto';
import * as fsPromises from 'node:fs/promises';
import type { SignalKey } from '../journal.ts';
import { writeDurably } from './durable-files.ts';

const MOST = 64;

export class FinishedSignals {
  readonly #path: string;
  #keys: Promise<string[]> | undefined;

  /** `path` names a JSON file in the state directory. */
  constructor(path: string) {
    this.#path = path;
  }

  async has(signal: SignalKey): Promise<boolean> {
    return (await this.#load()).includes(keyOf(signal));
  }

  async add(signal: SignalKey): Promise<void> {
    const [keys, key] = [await this.#load(), keyOf(signal)];
    if (keys.includes(key)) return;
    const next = [...keys, key].slice(-MOST);
    await writeDurably(this.#path, `${JSON.stringify(next)}\n`);
    this.#keys = Promise.resolve(next);
  }

  /** A damaged file only costs the memory. */
  async #load(): Promise<string[]> {
    this.#keys ??= fsPromises.readFile(this.#path, 'utf8').then(
      (text) => (JSON.parse(text) as unknown[]).map(String),
      () => [],
    );
    return await this.#keys.catch(() => []);
  }
}

function keyOf({ planId, created, command }: SignalKey): string {
  const { id, kind, url, version, sha256, forceupdate } = command;
  const text = JSON.stringify([planId, created, id, kind, url, version, sha256 ?? '', forceupdate === true]);
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
