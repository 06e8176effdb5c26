/** Owns carrying a rollout out in the foreground: under the lock, through the engine, in view, until it has ended. */
import { upgradePolicies } from '../../api/refit/upgrade-policy.ts';
import { kubeadmDialect } from '../../dialects/kubeadm/dialect.ts';
import { hostUpgrades } from '../../dialects/kubeadm/host-procedure.ts';
import { configMaps, newPlan, PLACE } from '../../dialects/kubeadm/plan-object.ts';
import { type Assessment, hostsOf } from '../../dialects/kubeadm/preflight.ts';
import { DrainPreviewer } from '../../drain/drain-preview.ts';
import { createDrains } from '../../drain/drains.ts';
import { type RolloutParts, rolloutController } from '../../engine/controller.ts';
import { nodeActionsOf } from '../../engine/decide/node-actions.ts';
import type { Dialect } from '../../engine/dialect.ts';
import { askControlPlane } from '../../engine/observe/api-server-health.ts';
import { gather } from '../../engine/observe/gather.ts';
import { listPolicies } from '../../engine/policy/choose-policy.ts';
import { policyOfPlan } from '../../engine/policy/plan-policy.ts';
import type { RolloutPolicy } from '../../engine/policy/rollout-policy.ts';
import type { KubeClient } from '../../kube/client.ts';
import { createElection, type Election, timesOf } from '../../kube/election/election.ts';
import { guardedClient } from '../../kube/election/write-guard.ts';
import { createEventRecorder } from '../../kube/events/recorder.ts';
import { isNotFound } from '../../kube/status-error.ts';
import { askReadyz } from '../../kube/transport/readyz.ts';
import type { KubeObject } from '../../kube/types.ts';
import { createInformer } from '../../kube/watch/informer.ts';
import { createManager } from '../../runtime/manager.ts';
import { sleep } from '../../util/clock.ts';
import { EXIT } from '../../util/errors.ts';
import { showStatus } from '../status/command.ts';
import { loadOnce } from '../status/load.ts';
import type { KubeadmApplyFlags, KubeadmSession } from './session.ts';

const READYZ_TIMEOUT_MS = 5000;
/** Milliseconds to win a lock that nobody holds before anybody is told that it is waited for. */
const PATIENCE_MS = 2000;
const LOOK_AGAIN_MS = 50;
/** Milliseconds; whatever is not written by then is written by nobody. */
const CLEAN_UP_WITHIN_MS = 10_000;

/** `decide` looks once more under the lock, and gives what is to be done now. Resolves with the exit code. */
export async function carryOut(
  session: KubeadmSession,
  flags: KubeadmApplyFlags,
  decide: () => Promise<Assessment>,
): Promise<number> {
  const { client, clock, log, identity } = session;
  const stop = new AbortController();
  const abort = AbortSignal.any([session.abort, stop.signal]);
  const election = createElection({
    client,
    ...PLACE,
    identity,
    ...timesOf(flags.leaseDuration),
    clock,
    logger: log,
  });
  const elected = election.run(abort);
  try {
    await locked(election, session);
    const { request, resumes } = await decide();
    const writer = guardedClient(client, election);
    if (!resumes) {
      if (hostsOf(request).length === 0) {
        session.output.write('Another run has done it: nothing is left.\n');
        return EXIT.ok;
      }
      await replacePlan(writer, newPlan(request));
    }
    return await runRollout(session, flags, writer, abort);
  } finally {
    stop.abort(new Error('done'));
    await elected;
  }
}

async function locked(election: Election, { clock, output, abort }: KubeadmSession): Promise<void> {
  const since = clock.monotonic();
  let isTold = false;
  while (!election.term()) {
    if (!isTold && clock.monotonic() - since > PATIENCE_MS && election.leader() !== '') {
      output.write(`Waiting for the lock ${PLACE.namespace}/${PLACE.name}: ${election.leader()} holds it.\n`);
      isTold = true;
    }
    await sleep(clock, LOOK_AGAIN_MS, abort);
  }
}

/** What an ended rollout left makes way: a new one has a uid of its own, by which hosts tell them apart. */
async function replacePlan(writer: KubeClient, plan: ReturnType<typeof newPlan>): Promise<void> {
  const { namespace, name } = PLACE;
  await writer.delete(configMaps, name, { namespace }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
  await writer.create(configMaps, plan, { namespace });
}

async function runRollout(
  session: KubeadmSession,
  flags: KubeadmApplyFlags,
  writer: KubeClient,
  abort: AbortSignal,
): Promise<number> {
  const { client, clock, log, manifest, shells, jitter } = session;
  const done = new AbortController();
  const working = AbortSignal.any([abort, done.signal]);
  const drains = createDrains({ client: writer, clock, random: jitter, log });
  const works = hostUpgrades({ manifest, shells, writer, drains, clock, log, abort: working });
  const dialect = kubeadmDialect(works) as unknown as Dialect;
  const policies = (await listPolicies(client, abort)) && createInformer(client, upgradePolicies, { logger: log });
  const policyFor = (plan: KubeObject): RolloutPolicy => policyOfPlan(dialect, policies?.list() ?? [], plan);
  const manager = createManager({ clock, logger: log });
  manager.addRunnable({ name: 'drains', run: async (term) => await drains.run(term) }, 'leading');
  manager.addController(
    rolloutController(dialect, { ...partsOf(session, flags, writer), policyFor, policies, drains }),
  );
  const managed = manager.run(working);
  try {
    const shown = show(session, flags, dialect, working);
    // Whichever ends first: a manager only ends by itself where it failed.
    const code = await Promise.race([shown, managed.then(async () => await shown)]);
    if (!working.aborted) await untilCleanedUp(session, dialect, policyFor);
    return code;
  } finally {
    done.abort(new Error('done'));
    await managed.catch(() => undefined);
  }
}

function partsOf(
  { client, config, clock, log }: KubeadmSession,
  { apiPort }: KubeadmApplyFlags,
  writer: KubeClient,
): Omit<RolloutParts, 'policyFor'> {
  const events = createEventRecorder({ client, component: 'refit-kubeadm', clock, logger: log });
  return {
    reader: client,
    writer,
    clock,
    log,
    prober: {
      askControlPlane: async (endpoints) =>
        await askControlPlane(
          endpoints,
          async (host) => await askReadyz(config, host, { port: apiPort, timeoutMs: READYZ_TIMEOUT_MS }),
        ),
      look: (abort = new AbortController().signal) => new DrainPreviewer(client, abort),
    },
    announce: (plan, { type, reason }) => events.record(plan, { type, reason: reason.code, message: reason.message }),
  };
}

/** Resolves with the exit code once the rollout has ended. */
async function show(
  { clock, output, manifest }: KubeadmSession,
  flags: KubeadmApplyFlags,
  dialect: Dialect,
  abort: AbortSignal,
): Promise<number> {
  const kubeconfig = flags.kubeconfig ?? manifest.kubeconfig;
  const connection = {
    ...(flags.apiPort === undefined ? {} : { apiPort: flags.apiPort }),
    ...(kubeconfig ? { kubeconfig } : {}),
    ...(flags.context ? { context: flags.context } : {}),
  };
  return await showStatus(
    { ...connection, output: 'text', watch: true },
    { dialects: [dialect], clock, output, abort },
  );
}

/** What the leader still owes the nodes when the rollout has ended: cordons and taints of ours on hosts that were not touched. */
async function untilCleanedUp(
  { client, clock, abort }: KubeadmSession,
  dialect: Dialect,
  policyFor: (plan: KubeObject) => RolloutPolicy,
): Promise<void> {
  const deadline = clock.monotonic() + CLEAN_UP_WITHIN_MS;
  while (clock.monotonic() < deadline) {
    const loaded = await loadOnce(client, dialect, abort);
    const now = clock.now();
    const nodeActions = loaded.plans().flatMap((plan) => {
      const snapshot = gather(dialect, plan, loaded.world, now, { isOnlyLooking: true });
      return nodeActionsOf(snapshot, policyFor(plan), now);
    });
    if (nodeActions.length === 0) return;
    await sleep(clock, LOOK_AGAIN_MS, abort);
  }
}
