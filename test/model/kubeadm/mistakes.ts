/** Planted mistakes of leaders of `refit kubeadm apply`, each with the invariant that it breaks. */
import { kubeadmDialect } from '../../../src/dialects/kubeadm/plan/kubeadm-dialect.ts';
import { withoutAnyCordon } from '../../../src/drain/cordon-marks.ts';
import type { Dialect } from '../../../src/engine/contract/dialect.ts';
import type { Signal } from '../../../src/engine/contract/signal.ts';
import type { Observation } from '../../../src/engine/model/facts.ts';
import type { Stage } from '../../../src/engine/model/rollout.ts';
import { type ConfigMap, type Node, nodes } from '../../../src/kube/resources.ts';
import { rfc3339 } from '../../../src/util/clock.ts';
import { MINUTE } from '../../support/clock/times.ts';
import { EVERY_RUN_ENDS } from '../explorer.ts';
import { configureKubeadm } from './configurations.ts';
import {
  type KubeadmLeader,
  type KubeadmView,
  leaderWith,
  realKubeadmLeader,
} from './kubeadm-leader.ts';
import { type KubeadmConfiguration, PLAN } from './kubeadm-objects.ts';
import { stateOf } from './kubeadm-state.ts';

export interface KubeadmMistake {
  readonly name: string;
  readonly configuration: KubeadmConfiguration;
  readonly leader: KubeadmLeader;
  readonly breaks: string;
}

type KubeadmDialect = Dialect<ConfigMap>;

function changing(
  change: (dialect: KubeadmDialect, view: KubeadmView) => Partial<KubeadmDialect>,
): KubeadmLeader {
  return leaderWith({
    dialectOf: (upgrades, view) => {
      const dialect = kubeadmDialect(upgrades);
      return { ...dialect, ...change(dialect, view) };
    },
  });
}

function changingSignal(change: (signal: Signal<ConfigMap>) => Partial<Signal<ConfigMap>>) {
  return changing(({ signal }) => ({ signal: { ...signal, ...change(signal) } }));
}

const reading = (change: (seen: Observation) => Observation): KubeadmLeader =>
  changingSignal((signal) => ({ read: (...given) => change(signal.read(...given)) }));

const resolving = (
  change: (stages: readonly Stage[], view: KubeadmView) => readonly Stage[],
): KubeadmLeader =>
  changing((dialect, view) => ({
    resolve: (...given) => {
      const rollout = dialect.resolve(...given);
      return { ...rollout, stages: change(rollout.stages, view) };
    },
  }));

/** Begins the work on each host before the record that says so. */
const ahead: KubeadmLeader = async (view) => {
  const deeds = await realKubeadmLeader(view);
  const plan = deeds.findIndex((each) => each.kind === 'write' && each.key === PLAN);
  const work = deeds.findIndex(({ kind }) => kind === 'begin');
  if (plan < 0 || work < plan) return deeds;
  return [...deeds.slice(0, plan), ...deeds.slice(work, work + 1), ...deeds.slice(plan, work)];
};

/** Forgets each procedure as soon as it has ended, although the Node may not show its end yet. */
const forgetful: KubeadmLeader = async (view) => {
  const procedures = [...view.procedures].filter(([, each]) => stateOf(each) !== 'ended');
  return await realKubeadmLeader({ ...view, procedures: new Map(procedures) });
};

/** Changes the last write to a Node, after its host is done. */
const finishing = (change: (node: Node) => Node | undefined): KubeadmLeader =>
  changingSignal(() => ({
    finish: (world, _rollout, _stage, { name }) => {
      const node = world.get(nodes, name);
      const after = node && change(node);
      return after && { kind: 'replace', resource: nodes, object: after };
    },
  }));

const reversed = resolving((stages) => stages.toReversed());

const twoWorkers = configureKubeadm('w1 w2');
const oneWorker = configureKubeadm('w1');
const hooked = configureKubeadm('w1', { hasHook: true });

export const KUBEADM_MISTAKES: readonly KubeadmMistake[] = [
  {
    name: 'the leader begins to work on a host before the ConfigMap records the intent',
    configuration: twoWorkers,
    leader: ahead,
    breaks: 'intent-before-signal',
  },
  {
    name: 'the leader works on one worker more than the manifest allows',
    configuration: twoWorkers,
    leader: resolving((stages) =>
      stages.map((stage) => ({ ...stage, maxInFlight: stage.maxInFlight + 1 })),
    ),
    breaks: 'concurrent-workers',
  },
  {
    name: 'the leader treats control-plane hosts as workers without a limit',
    configuration: configureKubeadm('c1 c2 c3'),
    leader: resolving((stages) =>
      stages.map((stage) => ({ ...stage, role: 'worker', maxInFlight: 2 })),
    ),
    breaks: 'one-controller-in-motion',
  },
  {
    name: 'the leader begins with the last stage',
    configuration: configureKubeadm('c1 w1'),
    leader: reversed,
    breaks: 'controllers-before-workers',
  },
  {
    name: 'the leader goes back as it went ahead',
    configuration: configureKubeadm('c1 w1', { kind: 'way back' }),
    leader: resolving((stages) =>
      stages.toReversed().map((stage) => ({ ...stage, goesBack: false })),
    ),
    breaks: 'workers-back-first',
  },
  {
    name: 'the leader upgrades each kubelet together with its host, also to a new minor version',
    configuration: configureKubeadm('c1 c2', { kind: 'minor' }),
    leader: resolving((stages) => stages.map((stage) => ({ ...stage, procedure: '' }))),
    breaks: 'no-kubelet-newer',
  },
  {
    name: 'the leader does not believe the report of a host that its process did not work on',
    configuration: configureKubeadm('w1', { moves: ['restart'] }),
    leader: reading((seen) => (seen.kind === 'succeeded' ? { kind: 'none' } : seen)),
    breaks: 'no-signal-for-what-is-done',
  },
  {
    name: 'the process forgets its work on a host before the Node shows the end of the work',
    configuration: oneWorker,
    leader: forgetful,
    breaks: 'one-signal-per-attempt',
  },
  {
    name: 'the leader names the attempt of a host after the number of Jobs',
    configuration: hooked,
    leader: resolving((stages, { hookJobs, now }) =>
      stages.map((stage) => ({
        ...stage,
        targets: stage.targets.map((target) =>
          target.state === 'intended'
            ? { ...target, since: rfc3339(now + hookJobs.length * MINUTE) }
            : target,
        ),
      })),
    ),
    breaks: 'one-job-per-attempt',
  },
  {
    name: 'the leader ignores the hooks of the policy',
    configuration: hooked,
    leader: leaderWith({ ruled: (policy) => ({ ...policy, hooks: [] }) }),
    breaks: 'job-before-drain',
  },
  {
    name: 'the leader cordons the node and does not drain it',
    configuration: oneWorker,
    leader: leaderWith({
      ruled: ({ drain, ...policy }) => ({ ...policy, drain: { ...drain, cordonOnly: true } }),
    }),
    breaks: 'drained-before-work',
  },
  {
    name: 'the leader removes its cordon from a host that failed after it was changed',
    configuration: configureKubeadm('w1:bad'),
    leader: changing(() => ({
      drainDelegation: {
        always: true,
        nodeOf: (_stage, { name }, world) => world.get(nodes, name),
      },
    })),
    breaks: 'closed-while-swapped',
  },
  {
    name: 'the leader treats a host at work as finished',
    configuration: oneWorker,
    leader: reading((seen) => (seen.kind === 'working' ? { ...seen, kind: 'succeeded' } : seen)),
    breaks: 'done-runs-it',
  },
  {
    name: 'the leader removes every cordon from a host that is done',
    configuration: configureKubeadm('w1', { moves: ['cordon'] }),
    leader: finishing((node) => withoutAnyCordon(node)),
    breaks: 'cordon-of-others-kept',
  },
  {
    name: 'the leader keeps its cordon on a host that is done',
    configuration: oneWorker,
    leader: changing(({ signal }) => ({
      drainDelegation: {
        always: true,
        nodeOf: (_stage, { name, state }, world) =>
          state === 'done' ? undefined : world.get(nodes, name),
      },
      signal: { ...signal, finish: () => undefined },
    })),
    breaks: 'no-cordon-left',
  },
  {
    name: 'the leader never tells a host that it is drained',
    configuration: oneWorker,
    leader: changingSignal(() => ({ acknowledge: () => undefined })),
    breaks: EVERY_RUN_ENDS,
  },
];
