/** Kills leaders and agents of Refit with SIGKILL at random moments of an upgrade. */
import { randomInt } from 'node:crypto';
import { sleep, systemClock } from '../../../../../src/util/clock.ts';
import type { Machine } from '../../../machines/machine.ts';
import { ENDED, upgradeAndCheck } from '../../outcome.ts';
import { stateOf } from '../../plan.ts';
import type { Scene } from '../../scene.ts';
import { after } from './next-release.ts';

const KILLS = 20;
/** How long the upgrade may take. */
const SECONDS = 900;

export async function killAtRandom(scene: Scene, version: string): Promise<string> {
  const next = after(scene, version);
  let kills = 0;
  const meanwhile = async (): Promise<void> => {
    const end = systemClock.monotonic() + SECONDS * 1000;
    while (!isEnded(await stateOf(scene)) && systemClock.monotonic() < end) {
      await sleep(systemClock, randomInt(500, 6000));
      if (await killOne(scene)) kills++;
    }
  };
  await upgradeAndCheck(scene, 'leaders and agents that are killed', next, {
    id: 'kills',
    meanwhile,
    seconds: SECONDS,
  });
  await scene.checks.check(`at least ${KILLS} processes of Refit were killed meanwhile`, () =>
    kills >= KILLS ? [] : [`${kills} were killed`],
  );
  return next;
}

const isEnded = (state: string): boolean => ENDED.some((each) => each === state);

/** Kills a leader or an agent. Reports false if the chosen one was not running just then. */
async function killOne({ cluster, log }: Scene): Promise<boolean> {
  const isLeader = randomInt(3) === 0;
  const service = isLeader ? 'refit-controller' : 'refit-agent';
  const among = isLeader ? cluster.controllers.slice(0, 2) : cluster.machines;
  const machine: Machine | undefined = among[randomInt(among.length)];
  if (machine === undefined) return false;
  const { ok } = await machine.run(`kill -9 "$(cat /run/services/${service}.pid)"`);
  if (ok) log(`killed ${service} on ${machine.name}`);
  return ok;
}
