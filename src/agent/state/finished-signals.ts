/** Remembers the last finished signals, so that a copy of one that comes back is not obeyed. */
import { createHash } from 'node:crypto';
import * as fsPromises from 'node:fs/promises';
import { type FinalStatus, isFinal } from '../../signal/names.ts';
import type { SignalKey } from '../journal.ts';
import { writeDurably } from './durable-files.ts';

/** How a signal ended here: its final status, or it was left to k0s's own agent. */
export type SignalEnd = FinalStatus | 'left';

const MOST = 64;

export class FinishedSignals {
  readonly #path: string;
  /** Each one a key, a space and the end. */
  #entries: Promise<string[]> | undefined;

  /** `path` names a JSON file in the state directory. */
  constructor(path: string) {
    this.#path = path;
  }

  async endOf(signal: SignalKey): Promise<SignalEnd | undefined> {
    const key = keyOf(signal);
    const text = (await this.#load()).find((entry) => entry.startsWith(key))?.split(' ')[1];
    return text === 'left' || isFinal(text) ? text : undefined;
  }

  /** The first end counts. */
  async add(signal: SignalKey, end: SignalEnd): Promise<void> {
    const [entries, key] = [await this.#load(), keyOf(signal)];
    if (entries.some((entry) => entry.startsWith(key))) return;
    const next = [...entries, `${key} ${end}`].slice(-MOST);
    await writeDurably(this.#path, `${JSON.stringify(next)}\n`);
    this.#entries = Promise.resolve(next);
  }

  /** A damaged file only costs the memory. */
  async #load(): Promise<string[]> {
    this.#entries ??= fsPromises.readFile(this.#path, 'utf8').then(
      (text) => (JSON.parse(text) as unknown[]).map(String),
      () => [],
    );
    return await this.#entries.catch(() => []);
  }
}

function keyOf({ planId, created, command }: SignalKey): string {
  const { id, kind, url, version, sha256, forceupdate } = command;
  const text = JSON.stringify([planId, created, id, kind, url, version, sha256 ?? '', forceupdate === true]);
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
