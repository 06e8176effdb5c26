/** The parts of a sequence that people can stop, silence or spoil: the leader, the agents and the hosts. */
import { asUsual, type NextStep } from '../../scenes/k0s.ts';
import type { Actor, RunningActor } from '../../scenes/stage.ts';
import type { Operation, Scenery } from './lab.ts';

/** What the hosts and the leader of one sequence do now. */
export interface Crew {
  readonly start: Actor;
  leader: RunningActor | undefined;
  readonly silent: Set<string>;
  /** The hosts that report a failure in their next step, with the words of the report. */
  readonly failing: Map<string, string>;
}

const CREWS = new WeakMap<Scenery, Crew>();

/** Returns the crew of a sequence whose lab is open. */
export function crewOf(scenery: Scenery): Crew {
  const found = CREWS.get(scenery);
  if (!found) throw new Error('the lab is not open');
  return found;
}

/** Creates the crew of the sequence, and starts its leader. */
export async function startCrew(scenery: Scenery, start: Actor): Promise<Crew> {
  const leader = await scenery.stage.start(start);
  const crew: Crew = { start, leader, silent: new Set(), failing: new Map() };
  CREWS.set(scenery, crew);
  return crew;
}

/** Returns the words with which the host fails now; undefined if it does not. A host fails once for each operation. */
export function failureOn({ truth }: Scenery, { failing }: Crew, host: string): string | undefined {
  const why = failing.get(host);
  if (why === undefined) return undefined;
  failing.delete(host);
  truth.fail(host, why);
  return why;
}

async function now(act: () => void): Promise<void> {
  act();
  await Promise.resolve();
}

/** Operations on the leader and on these hosts. */
export function crewOperations(hosts: readonly string[]): Operation[] {
  return [
    {
      name: 'the leader stops',
      act: async (scenery) => {
        const crew = crewOf(scenery);
        if (crew.leader) await scenery.stage.end(crew.leader);
        crew.leader = undefined;
        scenery.truth.isLed = false;
      },
    },
    {
      name: 'a leader starts',
      act: async (scenery) => {
        const crew = crewOf(scenery);
        crew.leader ??= await scenery.stage.start(crew.start);
        scenery.truth.isLed = true;
      },
    },
    ...hosts.map((host) => ({
      name: `${host} falls silent`,
      act: async (scenery: Scenery) => await now(() => crewOf(scenery).silent.add(host)),
    })),
    {
      name: 'all hosts answer again',
      act: async (scenery) => await now(() => crewOf(scenery).silent.clear()),
    },
    ...hosts.map((host) => ({
      name: `the next upgrade of ${host} fails`,
      act: async (scenery: Scenery) =>
        await now(() => crewOf(scenery).failing.set(host, `the disk of ${host} is full`)),
    })),
  ];
}

/** Returns what agents of Refit do: what the crew says. They tell the truth which failure they reported. */
export function agentStep(scenery: Scenery, crew: Crew): NextStep {
  return (step) => {
    if (crew.silent.has(step.name)) return undefined;
    if (step.status !== 'Downloading') return asUsual(step);
    const reason = failureOn(scenery, crew, step.name);
    return reason === undefined ? asUsual(step) : { status: 'FailedDownload', report: { reason } };
  };
}
