/**
 * Tests some of the runs with Jobs, which a seed chooses. Repeats runs that once found mistakes. Tests that the
 * observer detects violations.
 */
import { describe, expect, test } from 'vitest';
import type { Call, Caller } from '../../../src/kube/client.ts';
import { WHOLE } from '../../support/whole.ts';
import type { Fault } from '../lab/call-points.ts';
import { pick, seededRandom } from '../random.ts';
import { JOB_SWEEPS, type JobScenario, SCENARIOS, throwJobDice, tryJobs } from './job-sweeps.ts';

const SEED = Number(process.env['REFIT_SEED'] ?? 1);
/** The number of trials of each sweep. `npm run lab` runs all trials. */
const TRIALS = WHOLE ? 6 : 4;
const MIXTURES = WHOLE ? 3 : 2;
const CORDONS: JobScenario = SCENARIOS['Jobs that cordon their node'];
const FIXED: JobScenario = SCENARIOS['a Plan with a wrong template that somebody corrects'];

test.each(JOB_SWEEPS)(
  `${TRIALS} random runs with a fault violate no invariant: $name`,
  async ({ trials }) => {
    const all = await trials(SEED);
    const random = seededRandom(SEED);
    const some = Array.from({ length: TRIALS }, () => pick(random, all));
    for (const trial of some) expect((await tryJobs(trial, SEED)).wrong).toBe('');
  },
);

test.each(Array.from({ length: MIXTURES }, (_, index) => SEED + index))(
  'a random mixture of faults violates no invariant: seed %i',
  async (seed) => {
    expect((await tryJobs(await throwJobDice(seed), seed)).wrong).toBe('');
  },
);

describe('found by the lab', () => {
  const versionChangesIn = (second: number) =>
    ({ kind: 'interference', second, what: 'the wanted version changes' }) as const;
  const failsAt = (point: string, fault: Fault) =>
    ({ kind: 'call', point: `controller: ${point}`, fault }) as const;
  const setBack = {
    kind: 'trouble',
    actor: 'controller',
    second: 22,
    trouble: { kind: 'jump', hours: -1 },
  } as const;
  const notReady = {
    kind: 'interference',
    second: 2,
    what: 'a node is not Ready for a while',
  } as const;
  const lateNodes = failsAt('watch nodes #1', 'old or late data');

  test.each([
    [
      'a Job whose end is not recorded before the version changes leaves no cordon',
      CORDONS,
      versionChangesIn(4),
    ],
    ['so while the node is not the next one', FIXED, versionChangesIn(14)],
    ['what claims a node is not undone because its record comes later', CORDONS, lateNodes],
    ['so when the template changes', FIXED, lateNodes],
    ['nor by another Plan', { scene: { ...CORDONS.scene, hasOther: true } }, lateNodes],
    [
      'a clock that is set back lets no failed node be tried without end',
      {
        scene: { ...FIXED.scene, nodes: ['n1', 'n2', 'n3'], failsOn: ['n3'], ttlS: 4 },
        course: [setBack],
      },
      versionChangesIn(28),
    ],
    [
      'a node that is not Ready until its Job is deleted keeps its claim, and no cordon at the end',
      CORDONS,
      notReady,
    ],
    [
      'a drain ends whose watch begins as it ends',
      SCENARIOS['Jobs on nodes that the controller drains'],
      failsAt('watch pods #4', 'error 410'),
    ],
  ])('%s', async (_name, { scene, course = [] }: JobScenario, mishap) => {
    expect((await tryJobs({ scene, mishaps: [...course, mishap] }, 1)).wrong).toBe('');
  });
});

/** Changes the bodies of one kind of write. */
function tampering(
  method: Call['method'],
  resource: string,
  change: (body: Body) => object,
): (actor: string, caller: Caller) => Caller {
  return (_actor, caller) => ({
    ...caller,
    json: async <T>(call: Call): Promise<T> => {
      const isMeant = call.method === method && call.resource === resource;
      return await caller.json<T>(isMeant ? { ...call, body: change(call.body as Body) } : call);
    },
  });
}

interface Body {
  readonly metadata: { readonly name: string };
  readonly spec?: object;
}

describe('what is wrong is found out', () => {
  let count = 0;
  const renamed = (body: Body): object =>
    !body.metadata.name.startsWith('apply-') || ++count > 1
      ? body
      : { ...body, metadata: { ...body.metadata, name: 'unknown' } };
  const cordoned = (body: Body): object => ({
    ...body,
    spec: { ...body.spec, unschedulable: true },
  });
  test.each([
    [
      'a Job whose name nobody knows',
      { tamper: tampering('POST', 'jobs', renamed) },
      'doubled Job: n',
    ],
    ['a cordon that stays', { tamper: tampering('PUT', 'nodes', cordoned) }, 'cordon on n'],
    ['a node more than an onlooker allows', { allowed: 1 }, 'more than concurrency'],
  ])('%s', async (_name, change, words) => {
    const { wrong } = await tryJobs({ scene: { ...CORDONS.scene, ...change }, mishaps: [] }, SEED);
    expect(wrong).toContain(words);
  });
});
