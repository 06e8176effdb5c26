/** The invariants of `refit kubeadm apply`: what docs/internals/safety.md says, worded for hosts and procedures. */
import { requestOf } from '../../../src/dialects/kubeadm/plan/plan-object.ts';
import type { AskedInvariant } from '../planted-world.ts';
import { isController, type KubeadmConfiguration, minorOf, targetsIn } from './kubeadm-objects.ts';
import { atWork, type KubeadmGlance, stateOf } from './kubeadm-state.ts';

const isUnique = (all: readonly string[]): boolean => new Set(all).size === all.length;

const isWorker = (name: string): boolean => !isController(name);

/** Returns the names of the hosts of the run that do not have its version yet, or whose certificates are not renewed. */
function unfinished({ plan, past }: KubeadmGlance): readonly string[] {
  const request = requestOf(plan);
  if (!request) return [];
  const { version, certificates, leader, followers, kubelets, workers } = request;
  const asked = new Set([leader, followers, kubelets, workers].flat());
  return past
    .filter(
      ({ name, kubeadm, kubelet, needsRenewal }) =>
        (asked.has(name) && (kubeadm !== version || kubelet !== version)) ||
        (certificates.includes(name) && needsRenewal),
    )
    .map(({ name }) => name);
}

const goesBack = ({ plan }: KubeadmGlance): boolean => requestOf(plan)?.back === true;

export const KUBEADM_INVARIANTS: readonly AskedInvariant<KubeadmGlance, KubeadmConfiguration>[] = [
  {
    name: 'one-controller-in-motion',
    atRest: false,
    holds: (glance) => atWork(glance).filter(isController).length <= 1,
  },
  {
    name: 'controllers-before-workers',
    atRest: false,
    holds: (glance) =>
      goesBack(glance) || !atWork(glance).some(isWorker) || !unfinished(glance).some(isController),
  },
  {
    name: 'workers-back-first',
    atRest: false,
    holds: (glance) =>
      !goesBack(glance) || !atWork(glance).some(isController) || !unfinished(glance).some(isWorker),
  },
  {
    name: 'concurrent-workers',
    atRest: false,
    holds: (glance, { concurrent }) => atWork(glance).filter(isWorker).length <= concurrent,
  },
  {
    name: 'intent-before-signal',
    atRest: false,
    holds: ({ plan, procedures }) => {
      const targets = targetsIn(plan);
      return Object.entries(procedures).every(
        ([key, procedure]) =>
          stateOf(procedure) === 'ended' ||
          targets.some(
            (each) =>
              each.key === key && each.state === 'intended' && each.since === procedure.attempt,
          ),
      );
    },
  },
  {
    name: 'no-signal-for-what-is-done',
    atRest: false,
    holds: ({ past }) => past.every(({ begunAgain }) => !begunAgain),
  },
  {
    name: 'one-signal-per-attempt',
    atRest: false,
    holds: ({ begun }) => isUnique(begun),
  },
  {
    name: 'one-job-per-attempt',
    atRest: false,
    holds: ({ past }) => past.every(({ hooked }) => isUnique(hooked)),
  },
  {
    name: 'job-before-drain',
    atRest: false,
    holds: ({ past }) => past.every(({ closedUnhooked }) => !closedUnhooked),
  },
  {
    name: 'drained-before-work',
    atRest: false,
    holds: ({ past }) => past.every(({ changedUndrained }) => !changedUndrained),
  },
  {
    name: 'closed-while-swapped',
    atRest: false,
    holds: ({ nodes, past }) =>
      past.every(
        ({ name, isHalfDone }) => !isHalfDone || nodes.get(name)?.spec?.unschedulable === true,
      ),
  },
  {
    name: 'done-runs-it',
    atRest: false,
    holds: ({ plan, past }) => {
      const { version, kubelets = [] } = requestOf(plan) ?? {};
      return targetsIn(plan)
        .filter(({ state }) => state === 'done')
        .every(({ key, name }) => {
          const host = past.find((each) => each.name === name);
          if (key.startsWith('certificates/')) return host?.needsRenewal === false;
          const keepsKubelet = kubelets.includes(name) && !key.startsWith('kubelets/');
          return host?.kubeadm === version && (keepsKubelet || host?.kubelet === version);
        });
    },
  },
  {
    name: 'no-kubelet-newer',
    atRest: false,
    holds: ({ past }) => {
      const servers = past.filter(({ name }) => isController(name));
      const oldest = Math.min(...servers.map(({ kubeadm }) => minorOf(kubeadm)));
      return past.every(({ kubelet }) => minorOf(kubelet) <= oldest);
    },
  },
  {
    name: 'cordon-of-others-kept',
    atRest: false,
    holds: ({ nodes, past }) =>
      past.every(
        ({ name, keptClosed }) => !keptClosed || nodes.get(name)?.spec?.unschedulable === true,
      ),
  },
  {
    name: 'no-cordon-left',
    atRest: true,
    // A host that failed after it was changed stays cordoned.
    holds: ({ nodes, past }) =>
      past.every(
        ({ name, keptClosed, isHalfDone }) =>
          keptClosed || isHalfDone || nodes.get(name)?.spec?.unschedulable !== true,
      ),
  },
];
