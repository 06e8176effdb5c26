/**
 * Measures the time that the agent adds to a restart. This is the time from the order to restart until the agent
 * reports the new version, minus the time that the service itself needs.
 */
import { sleep } from '../../src/util/clock.ts';
import type { Restart, Restarts } from '../plan/restarts.ts';
import type { AgentRig, Payload } from './rig.ts';

export interface RestartRound {
  /** Milliseconds from the event that shows `Restart` to the event that shows `UnCordoning`. */
  readonly whole: number;
  /** Milliseconds from the end of the old process to the first answer of the new process. */
  readonly own: number;
}

const ROUNDS = 9;
const POLL_MS = 5;

/**
 * Upgrades the host alternately to the two versions. The host starts with the first version, so the first upgrade is to
 * the second version.
 */
export async function measureRestarts(
  rig: AgentRig,
  restarts: Restarts,
  versions: readonly [string, string],
  payloadOf: (version: string) => Payload,
): Promise<readonly RestartRound[]> {
  const rounds: RestartRound[] = [];
  let before = restarts.of(rig.host.name);
  for (let round = 0; round < ROUNDS; round++) {
    const version = versions[(round + 1) % 2] ?? versions[0];
    await rig.send({ id: 0, kind: 'k0supdate', version, ...payloadOf(version) });
    await rig.reached('Cordoning');
    await rig.advance('ApplyingUpdate');
    const ordered = await rig.reached('Restart');
    const reported = await rig.reached('UnCordoning');
    await rig.advance('Completed');
    const { down, start } = await newRestart(restarts, rig, before);
    rounds.push({ whole: reported - ordered, own: down + start });
    before = restarts.of(rig.host.name);
  }
  return rounds;
}

/**
 * Waits for the record of a new restart. This process may notice the first answer of the service a little later than
 * the agent does.
 */
async function newRestart(
  restarts: Restarts,
  { host, clock, abort }: AgentRig,
  before: Restart | undefined,
): Promise<Restart> {
  for (;;) {
    const last = restarts.of(host.name);
    if (last !== undefined && last !== before) return last;
    await sleep(clock, POLL_MS, abort);
  }
}
