/** Measures how many bytes an agent downloads again after it was killed during a download. */
import { stat } from 'node:fs/promises';
import type { DownloadServer } from '../../sandbox/hosts/download-server.ts';
import { upgradePathsOf } from '../../src/agent/state/state-directory.ts';
import { sleep } from '../../src/util/clock.ts';
import type { AgentRig } from './rig.ts';

export interface ResumeRound {
  /** The bytes on the disk when the agent was killed. The next agent reads them again from the disk. */
  readonly had: number;
  /** Bytes that the server sent more than once. */
  readonly again: number;
}

const ROUNDS = 9;
const POLL_MS = 1;

/**
 * Kills the agent once during each download. `random` returns a number from 0 to 1, which is the part of the bytes
 * after which the agent is killed.
 */
export async function measureResumes(
  rig: AgentRig,
  {
    server,
    path,
    version,
    bytes,
  }: { server: DownloadServer; path: string; version: string; bytes: number },
  random: () => number,
): Promise<readonly ResumeRound[]> {
  const { part } = upgradePathsOf(rig.host.binary);
  const rounds: ResumeRound[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const earlier = server.requests.length;
    await rig.send({
      id: 0,
      kind: 'k0supdate',
      version,
      url: server.url + path,
      sha256: server.sha256(path),
    });
    await untilSize(part, random() * bytes, rig);
    await rig.replaceAgent();
    const had = server.requests.slice(earlier).at(-1)?.bytesSent ?? 0;
    await rig.reached('Cordoning');
    const requests = server.requests.slice(earlier);
    const sent = requests.reduce((sum, { bytesSent }) => sum + bytesSent, 0);
    rounds.push({ had: requests[1]?.from ?? had, again: sent - bytes });
    // The result of this round is removed first, so that the next round begins in the same state.
    await rig.advance('Failed');
    await untilGone(upgradePathsOf(rig.host.binary).staged, rig);
  }
  return rounds;
}

async function untilSize(path: string, bytes: number, { clock, abort }: AgentRig): Promise<void> {
  while ((await sizeOf(path)) < bytes) await sleep(clock, POLL_MS, abort);
}

async function untilGone(path: string, { clock, abort }: AgentRig): Promise<void> {
  while ((await sizeOf(path)) > 0) await sleep(clock, POLL_MS, abort);
}

/** Returns the size of the file in bytes; 0 if the file does not exist. */
async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}
