/**
 * Remembers the last finished signals, so that the agent does not carry out an old copy of a signal that appears on the
 * object again.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { type FinalStatus, isFinal } from '../../signal/names.ts';
import { parseJson } from '../../util/json.ts';
import type { SignalKey } from '../journal.ts';
import { writeDurably } from './durable-files.ts';

/** The end of a signal on this host: its final status, or `left` if the agent left the signal to k0s's own agent. */
export type SignalEnd = FinalStatus | 'left';

/** The most finished signals that are remembered. When there are more, the oldest signals are forgotten. */
const MOST = 64;

export interface FinishedSignals {
  /** Returns how the signal ended on this host; undefined if the signal has not ended, or if its end is forgotten. */
  readonly endOf: (signal: SignalKey) => Promise<SignalEnd | undefined>;
  /** Remembers how the signal ended. If an end of the signal is already remembered, that first end stays. */
  readonly add: (signal: SignalKey, end: SignalEnd) => Promise<void>;
}

/**
 * Opens the list of finished signals. `path` names a JSON file in the state directory. Each of its
 * entries has a key, a space and the end of the signal.
 */
export function finishedSignals(path: string): FinishedSignals {
  let entries: string[] | undefined;
  /** Returns the entries of the file. If the file is damaged, its entries are lost, which has no other effect. */
  async function load(): Promise<string[]> {
    if (entries) return entries;
    const found = parseJson(await readFile(path, 'utf8').catch(() => undefined));
    // Another call may have read or changed the entries in the meantime.
    entries ??= Array.isArray(found) ? found.map(String) : [];
    return entries;
  }
  return {
    async endOf(signal) {
      const key = keyOf(signal);
      const text = (await load()).find((entry) => entry.startsWith(key))?.split(' ')[1];
      return text === 'left' || isFinal(text) ? text : undefined;
    },
    async add(signal, end) {
      const known = await load();
      const key = keyOf(signal);
      if (known.some((entry) => entry.startsWith(key))) return;
      const next = [...known, `${key} ${end}`].slice(-MOST);
      await writeDurably(path, `${JSON.stringify(next)}\n`);
      entries = next;
    },
  };
}

function keyOf({ planId, created, command }: SignalKey): string {
  const { id, kind, url, version, sha256, forceupdate } = command;
  const text = JSON.stringify([
    planId,
    created,
    id,
    kind,
    url,
    version,
    sha256 ?? '',
    forceupdate === true,
  ]);
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
