/** Untruths that tests plant into one surface, to prove that an invariant finds them. */
import type { PagePlan } from '../../src/cli/dashboard/state.ts';
import type { PlanJson, TargetJson } from '../../src/cli/status/json-form.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import type { Surfaces } from './surfaces.ts';

export interface Planted {
  /** The surface, and what is wrong with it. */
  readonly name: string;
  /** The invariant that finds it. */
  readonly breaks: string;
  /** True if the surface has these words only while there is one plan. */
  readonly isOfOnePlan?: true;
  /** True if it is planted only into a run that rolls an earlier run back. */
  readonly isOfRollBack?: true;
  readonly distort: (surfaces: Surfaces) => Surfaces;
}

function withPlans(surfaces: Surfaces, change: (plan: PlanJson) => PlanJson): Surfaces {
  const { json } = surfaces;
  return { ...surfaces, json: { ...json, plans: json.plans.map(change) } };
}

function withTargets(surfaces: Surfaces, change: (target: TargetJson) => TargetJson): Surfaces {
  return withPlans(surfaces, (plan) => ({
    ...plan,
    stages: plan.stages.map((stage) => ({ ...stage, targets: stage.targets.map(change) })),
  }));
}

function withPages(surfaces: Surfaces, change: (plan: PagePlan) => PagePlan): Surfaces {
  const { page } = surfaces;
  return { ...surfaces, page: { ...page, plans: page.plans.map(change) } };
}

type RecordStatus = Surfaces['records'] extends ReadonlyMap<string, infer Status> ? Status : never;

function withRecords(surfaces: Surfaces, change: (status: RecordStatus) => RecordStatus): Surfaces {
  const records = [...surfaces.records].map(([uid, status]) => [uid, change(status)] as const);
  return { ...surfaces, records: new Map(records) };
}

export const PLANTED: readonly Planted[] = [
  {
    name: 'JSON form: a target that is not done is told as done',
    breaks: 'version-told-runs',
    distort: (surfaces) =>
      withTargets(surfaces, (target) =>
        target.phase !== 'done' ? { ...target, phase: 'done', installed: undefined } : target,
      ),
  },
  {
    name: 'JSON form: a node is told to run a version that it never had',
    breaks: 'version-told-runs',
    distort: (surfaces) => withTargets(surfaces, (target) => ({ ...target, runs: 'v9.9.9' })),
  },
  {
    name: 'JSON form: a plan waits for a node that is in no cluster',
    breaks: 'waits-are-for-what-exists',
    distort: (surfaces) =>
      withPlans(surfaces, (plan) => ({
        ...plan,
        waits: [
          {
            target: 'w99',
            reason: { code: 'Held', message: 'w99 is held' },
            ends: 'soon',
            gate: 'held',
            since: '',
          },
        ],
      })),
  },
  {
    name: 'status -o wide: a time left is told whatever happens',
    breaks: 'no-time-left-while-nothing-moves',
    isOfOnePlan: true,
    distort: (surfaces) => ({ ...surfaces, text: `${surfaces.text}\n  about 5 min left` }),
  },
  {
    name: 'why: a value is missing',
    breaks: 'texts-are-for-people',
    distort: (surfaces) => ({ ...surfaces, why: `${surfaces.why}\n  waits since undefined` }),
  },
  {
    name: 'history: a value is missing',
    breaks: 'texts-are-for-people',
    distort: (surfaces) => ({ ...surfaces, history: `${surfaces.history}\n  NaN s ago` }),
  },
  {
    name: 'report: the start of the run is another one',
    breaks: 'times-are-equal',
    isOfOnePlan: true,
    distort: (surfaces) => ({
      ...surfaces,
      report: surfaces.report.replaceAll(/tarted at \S+/g, 'tarted at 2020-01-01T00:00:00Z'),
    }),
  },
  {
    name: 'page: each plan shows 100 percent',
    breaks: 'completed-is-true',
    distort: (surfaces) => withPages(surfaces, (plan) => ({ ...plan, percent: 100 })),
  },
  {
    name: 'page: one target more than there is',
    breaks: 'counts-add-up',
    distort: (surfaces) => withPages(surfaces, (plan) => ({ ...plan, total: plan.total + 1 })),
  },
  {
    name: 'page: another phase than the JSON form',
    breaks: 'surfaces-agree',
    distort: (surfaces) => withPages(surfaces, (plan) => ({ ...plan, phase: 'odd' })),
  },
  {
    name: 'NodeRollout: a target is counted twice',
    breaks: 'counts-add-up',
    distort: (surfaces) =>
      withRecords(surfaces, (status) => ({
        ...status,
        ...(status.counts && { counts: { ...status.counts, done: status.counts.done + 1 } }),
      })),
  },
  {
    name: 'NodeRollout: a run is listed twice',
    breaks: 'runs-are-listed-if-admitted',
    distort: (surfaces) =>
      withRecords(surfaces, (status) => ({
        ...status,
        history: [...(status.history ?? []), ...(status.history ?? [])],
      })),
  },
  {
    name: 'NodeRollout: a node has failed with the cause of another one',
    breaks: 'causes-are-of-their-node',
    distort: (surfaces) =>
      withRecords(surfaces, (status) => {
        const [first, ...others] = status.history ?? [];
        const failures = [
          { node: 'x9', message: 'w1 did not report within its deadline' },
          { node: 'x9', message: 's1 did not report within its deadline' },
        ];
        return first === undefined
          ? status
          : { ...status, history: [{ ...first, failures }, ...others] };
      }),
  },
  {
    name: 'Events: an upgrade is told that never happened',
    breaks: 'upgrades-told-happened',
    distort: (surfaces) => ({
      ...surfaces,
      events: [
        ...surfaces.events,
        {
          reason: 'Completed',
          kind: 'Node',
          name: 'w1',
          message: 'Upgraded to v9',
          count: 1,
          last: '',
        },
      ],
    }),
  },
  {
    name: 'Events: a roll-back is told as an upgrade',
    breaks: 'a-roll-back-is-no-upgrade',
    isOfRollBack: true,
    distort: (surfaces) => ({
      ...surfaces,
      events: [
        ...surfaces.events,
        {
          reason: 'Signalled',
          kind: 'Node',
          name: 'w1',
          message: 'Upgrade to v9 started',
          count: 1,
          last: rfc3339(surfaces.now),
        },
      ],
    }),
  },
  {
    name: 'messages: a start is told twice',
    breaks: 'messages-were-true-when-sent',
    distort: (surfaces) => ({
      ...surfaces,
      messages: [
        ...surfaces.messages,
        ...Array.from({ length: 20 }, () => '2026-11-20T08:00:00Z Started: it has started'),
      ],
    }),
  },
  {
    name: 'messages: the end is told before the nodes run the version',
    breaks: 'messages-were-true-when-sent',
    distort: (surfaces) => ({
      ...surfaces,
      messages: [
        ...surfaces.messages,
        '2026-11-20T08:00:00Z Done: a/b: the upgrade to v9.9.9 is done; 3 of 3 nodes done',
      ],
    }),
  },
];
