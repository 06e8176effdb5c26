/** What happens in an exploration of Rancher's Plans without a leader: Jobs, kubelets, drains, Kubernetes and people. */
import type { CattlePlan } from '../../../src/api/cattle/plan.ts';
import { recordedFailures } from '../../../src/dialects/cattle/plan/attempts.ts';
import { holds } from '../../../src/dialects/cattle/plan/conditions.ts';
import { cordonsIn } from '../../../src/dialects/cattle/plan/job-cordons.ts';
import { CONTROL_PREFIX, hashOn, VERSION_LABEL } from '../../../src/dialects/cattle/plan/names.ts';
import {
  annotated,
  type Job,
  type KubeObject,
  type Node,
  withoutAnnotations,
} from '../../../src/kube/resources.ts';
import { rfc3339 } from '../../../src/util/clock.ts';
import { withKubelet } from '../../support/builders/nodes.ts';
import { drainChanges, type ObjectChange } from '../object-states.ts';
import {
  type CattleConfiguration,
  type CattleMove,
  TIMES,
  withOtherVersion,
} from './cattle-objects.ts';
import { type CattleState, isAtWork, nodeOfJob } from './cattle-state.ts';

export type CattleChange = ObjectChange<CattleState>;

export interface CattleScene {
  readonly configuration: CattleConfiguration;
  readonly state: CattleState;
  readonly objects: ReadonlyMap<string, KubeObject>;
  readonly now: number;
}

export function changesIn(scene: CattleScene): CattleChange[] {
  const { state } = scene;
  const passing = state.time + 1 < TIMES.length;
  return [
    ...[...scene.objects].flatMap(([key, object]) =>
      key.startsWith('jobs/') ? changesOfJob(scene, key, object) : [],
    ),
    ...kubeletChanges(scene),
    ...drainChanges(state),
    ...state.hookJobs.flatMap((job, at): CattleChange[] => {
      if (job.state !== 'running') return [];
      const hookJobs = state.hookJobs.with(at, { ...job, state: 'succeeded' });
      return [{ label: 'the Job of the hook succeeds', fair: true, state: { hookJobs } }];
    }),
    ...(passing ? [{ label: 'an hour passes', fair: true, state: { time: state.time + 1 } }] : []),
    ...state.moves.flatMap((move) => changesByPerson(scene, move)),
  ];
}

/**
 * Returns the deletions of ended Jobs by Kubernetes. It deletes a Job only a quarter of an hour after the end of the Job.
 * A leader has recorded the failure of a failed Job by then, unless no leader worked all that time.
 */
export function deletionsIn({ objects, now }: CattleScene): CattleChange[] {
  const failures = recordedFailures(objects.get('plans/plan') as CattlePlan).nodes;
  return [...objects].flatMap(([key, object]): CattleChange[] => {
    if (!key.startsWith('jobs/')) return [];
    const job: Job = object;
    const end = (holds(job, 'Complete') ?? holds(job, 'Failed'))?.lastTransitionTime;
    const known = holds(job, 'Failed') ? failures.get(nodeOfJob(job))?.since : end;
    const isOld = (time: string | undefined): boolean => Date.parse(time ?? '') < now;
    if (!isOld(end) || !isOld(known)) return [];
    const label = `Kubernetes deletes the ended Job of ${nodeOfJob(job)}`;
    return [{ label, fair: false, objects: new Map([[key, undefined]]) }];
  });
}

function changesOfJob(scene: CattleScene, key: string, job: Job): CattleChange[] {
  const { configuration, objects, now, state } = scene;
  const name = nodeOfJob(job);
  const nodeKey = `nodes/${name}`;
  const node: Node | undefined = objects.get(nodeKey);
  const past = state.past.find((each) => each.name === name);
  if (!node || !past) return [];
  if (!isAtWork(job)) return [];
  if (configuration.drains === 'the Job' && cordonsIn(job) && !past.isEmpty) {
    const cordoned: Node = { ...node, spec: { ...node.spec, unschedulable: true } };
    const label = `the Job of ${name} cordons and drains its node`;
    const change = { label, fair: true, past: { name, isEmpty: true } };
    return [{ ...change, objects: new Map([[nodeKey, cordoned]]) }];
  }
  const isGood = configuration.nodes[name] === 'good';
  const type = isGood ? 'Complete' : 'Failed';
  const condition = { type, status: 'True', lastTransitionTime: rfc3339(now) };
  const { startTime } = job.status ?? {};
  const status = { startTime, conditions: [condition] } as NonNullable<Job['status']>;
  const hash = hashOn(job, objects.get('plans/plan') as CattlePlan) ?? '';
  const succeeded = [...new Set([...past.succeeded, hash])].toSorted();
  const version = (job.metadata.labels?.[VERSION_LABEL] ?? '').replace('-k3s', '+k3s');
  const unreported = configuration.installsK3s ? version : '';
  return [
    {
      label: `the Job of ${name} ${isGood ? 'succeeds' : 'fails'}`,
      fair: true,
      objects: new Map([[key, { ...job, status }]]),
      ...(isGood && { past: { name, succeeded, unreported } }),
    },
  ];
}

/** After its Job, a node starts the new kubelet, which reports its version. */
function kubeletChanges({ state, objects }: CattleScene): CattleChange[] {
  return state.past.flatMap(({ name, unreported }): CattleChange[] => {
    const node: Node | undefined = objects.get(`nodes/${name}`);
    if (!node || unreported === '') return [];
    const label = `the kubelet of ${name} reports ${unreported}`;
    const reporting = new Map([[`nodes/${name}`, withKubelet(node, unreported)]]);
    return [{ label, fair: true, objects: reporting, past: { name, unreported: '' } }];
  });
}

const PAUSE = `${CONTROL_PREFIX}pause`;
const ABORT = `${CONTROL_PREFIX}abort`;

function changesByPerson(scene: CattleScene, move: CattleMove): CattleChange[] {
  const { configuration, state, objects, now } = scene;
  const plan = objects.get('plans/plan') as CattlePlan;
  const moves = state.moves.filter((each) => each !== move);
  const written = (label: string, after: CattlePlan, isLast = true): CattleChange => ({
    label,
    fair: false,
    objects: new Map([['plans/plan', after]]),
    ...(isLast && { state: { moves } }),
  });
  switch (move) {
    case 'edit':
      return [
        written('a person changes the version of the Plan', withOtherVersion(plan, configuration)),
      ];
    case 'editBack':
      if (state.moves.includes('edit')) return [];
      return [
        written('a person restores the version of the Plan', withOtherVersion(plan, configuration)),
      ];
    case 'pause': {
      const isPaused = plan.metadata.annotations?.[PAUSE] !== undefined;
      return isPaused
        ? [{ ...written('a person resumes the Plan', withoutAnnotations(plan, PAUSE)), fair: true }]
        : [written('a person pauses the Plan', annotated(plan, { [PAUSE]: rfc3339(now) }), false)];
    }
    case 'abort':
      return [written('a person aborts the Plan', annotated(plan, { [ABORT]: 'stop' }))];
    case 'restart':
      return [{ label: 'the leader restarts', fair: false, state: { moves, drains: {} } }];
    case 'cordon':
      return state.past.flatMap(({ name }): CattleChange[] => {
        const key = `nodes/${name}`;
        const node: Node | undefined = objects.get(key);
        // A cordon by kubectl in a Job names no owner. So nobody can tell it from the cordon of a person who cordons a
        // node in progress.
        const isOfJob =
          configuration.drains === 'the Job' && plan.status?.applying?.includes(name) === true;
        if (!node || node.spec?.unschedulable === true || isOfJob) return [];
        return [
          {
            label: `a person cordons ${name}`,
            fair: false,
            objects: new Map([[key, { ...node, spec: { ...node.spec, unschedulable: true } }]]),
            state: { moves },
            past: { name, keptClosed: true },
          },
        ];
      });
    case 'retry':
      return [...objects].flatMap(([key, object]): CattleChange[] => {
        const job: Job = object;
        if (!key.startsWith('jobs/') || holds(job, 'Failed') === undefined) return [];
        const name = nodeOfJob(job);
        const label = `a person deletes the failed Job of ${name}`;
        // The person asks for another Job, even if no leader has seen yet that the attempt failed.
        const { installed = [] } = state.past.find((each) => each.name === name) ?? {};
        const past = { name, installed: installed.slice(0, -1) };
        const change = { label, fair: false, state: { moves }, past };
        return [{ ...change, objects: new Map([[key, undefined]]) }];
      });
  }
}
