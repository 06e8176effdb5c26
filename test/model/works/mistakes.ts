/** Planted mistakes of leaders of works, each with the invariant that it breaks. */
import { configureWorks, type NamedWorkConfiguration } from './configurations.ts';
import { ELSEWHERE, JOBS, type WorkFamily } from './families.ts';
import { realWorkLeader, type WorkLeader } from './work-leader.ts';

export interface WorkMistake {
  readonly name: string;
  readonly configuration: NamedWorkConfiguration;
  readonly leader: WorkLeader;
  readonly breaks: string;
}

/** Requests work immediately after the decision, together with the write that records the decision. */
const ahead: WorkLeader = async (family, view) => {
  const deeds = await realWorkLeader(family, view);
  const { recorded } = deeds;
  if (!recorded) return deeds;
  const { asked } = await realWorkLeader(family, { ...view, plan: recorded, current: recorded });
  return { recorded, asked: [...deeds.asked, ...asked] };
};

/** Treats a slot as free as soon as its target has failed. */
const freesSlots: WorkLeader = async (family, view) =>
  await realWorkLeader(family, { ...view, plan: freed(view.plan), current: freed(view.current) });

function freed(plan: Parameters<WorkLeader>[1]['plan']): typeof plan {
  const { status } = plan;
  if (!status) return plan;
  const stages = status.stages.map((stage) => ({ ...stage, maxInFlight: stage.maxInFlight + 1 }));
  return { ...plan, status: { ...status, stages } };
}

/** Treats work that has begun as done. */
const tooEarly: WorkLeader = async (family, view) => {
  const hasty: WorkFamily = {
    ...family,
    dialect: (begin) => {
      const dialect = family.dialect(begin);
      return {
        ...dialect,
        signal: {
          ...dialect.signal,
          read: (...given) => {
            const seen = dialect.signal.read(...given);
            return seen.kind === 'working' ? { ...seen, kind: 'succeeded' } : seen;
          },
        },
      };
    },
  };
  return await realWorkLeader(hasty, view);
};

export const WORK_MISTAKES: readonly WorkMistake[] = [
  {
    name: 'the leader creates a Job before the plan records the intent',
    configuration: configureWorks(JOBS, 'a b', 1, 0),
    leader: ahead,
    breaks: 'intent-before-signal',
  },
  {
    name: 'the leader starts work before the plan records the intent',
    configuration: configureWorks(ELSEWHERE, 'a b', 1, 0),
    leader: ahead,
    breaks: 'intent-before-signal',
  },
  {
    name: 'the leader uses more slots than the limit allows',
    configuration: configureWorks(JOBS, 'a:bad b c', 1, 0),
    leader: freesSlots,
    breaks: 'concurrent-workers',
  },
  {
    name: 'the leader treats work that has begun as done',
    configuration: configureWorks(ELSEWHERE, 'a b', 1, 0),
    leader: tooEarly,
    breaks: 'done-runs-it',
  },
  {
    name: 'the leader treats a Job that has begun as done',
    configuration: configureWorks(JOBS, 'a b', 1, 0),
    leader: tooEarly,
    breaks: 'no-signal-for-what-is-done',
  },
];
