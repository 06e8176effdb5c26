/** Carries out a rollout of kubeadm in the foreground: acquires the lock, runs the controller and shows its progress. */

import { randomUUID } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { loadOnce } from '../../../cli/status/load.ts';
import { showStatus } from '../../../cli/status/status-command.ts';
import {
  type ControllerProcess,
  prepareControllerProcess,
} from '../../../composition/controller-process.ts';
import {
  CORDON_ANNOTATION,
  EXCLUSION_LABEL,
  exclusionOf,
  isMarkStale,
} from '../../../drain/cordon-marks.ts';
import { assess } from '../../../engine/assess/assess.ts';
import type { AskReadyz } from '../../../engine/snapshot/api-server-health.ts';
import { gather } from '../../../engine/snapshot/gather.ts';
import { nodeActionsOf } from '../../../engine/turn/choose-node-actions.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { createElection, type Election, timesOf } from '../../../kube/election/election.ts';
import { guardedClient, type WriteGuard } from '../../../kube/election/write-guard.ts';
import {
  configMaps,
  labelRemovalOf,
  type Node,
  nodes,
  removalOf,
} from '../../../kube/resources.ts';
import { ifFound, isInvalid, isNotFound } from '../../../kube/status-error.ts';
import { rfc3339, sleep } from '../../../util/clock.ts';
import { EXIT, messageOf, RefitError, unlessError } from '../../../util/errors.ts';
import { defined } from '../../../util/json.ts';
import { untilAborted } from '../../../util/waits.ts';
import { snapshotScript, whyNoMember } from '../host/etcd.ts';
import { filledScript } from '../host/filled-script.ts';
import { type Shells, saidBy } from '../host/host.ts';
import { etcdAnswers } from '../host/probe.ts';
import { prepareScript } from '../host/scripts.ts';
import { hostUpgrades } from '../plan/host-procedure.ts';
import { kubeadmDialect } from '../plan/kubeadm-dialect.ts';
import { KUBEONE_LABEL, labelStateOf } from '../plan/kubeone-label.ts';
import { controlPlaneOf, type Manifest } from '../plan/manifest.ts';
import { newPlan, PLACE, type Request } from '../plan/plan-object.ts';
import { type HostAssessment, hostsOf, isEmpty } from '../plan/preflight.ts';
import { kubeadmReadiness } from '../plan/readiness.ts';
import { type ApproveServing, approveServing } from '../plan/serving-certificates.ts';
import { policyEffects } from '../policy-effects.ts';
import { texts } from '../texts.ts';
import { removeLabels, setLabels } from './kubeone-label.ts';
import { untilHooksEnded } from './until-hooks-ended.ts';
import { type ApplySession, type KubeadmSession, onAll, outputOn } from './upgrade-session.ts';

/** The milliseconds to wait for the lock before a message names the process that holds it. */
const PATIENCE_MS = 2000;
const RECHECK_MS = 50;
/** The most milliseconds to wait for the last writes of the leader. */
const CLEAN_UP_WITHIN_MS = 10_000;

export async function underLock<T>(
  session: ApplySession,
  work: (election: Election) => Promise<T>,
): Promise<T> {
  const { client, clock, log, identity, flags } = session;
  const stop = new AbortController();
  const election = createElection({
    client,
    ...PLACE,
    identity,
    ...timesOf(flags.leaseDuration),
    clock,
    log,
  });
  // On Ctrl-C the work ends before the lock is released, because the last writes need the lock.
  const elected = election.run(stop.signal);
  try {
    await locked(election, session);
    return await work(election);
  } finally {
    stop.abort(new Error('done'));
    await elected;
  }
}

/**
 * Acquires the lock and carries out the plan that `decide` returns. `decide` surveys the cluster again while the lock
 * is held. Resolves with the exit code.
 */
export async function carryOut(
  session: ApplySession,
  decide: () => Promise<HostAssessment>,
): Promise<number> {
  const { client, clock, abort } = session;
  return await underLock(session, async (election) => {
    const { request, resumes, continues, start, before } = await decide();
    const writer = guardedClient(client, election, clock);
    await removeStaleMarks(writer, abort);
    if (!resumes && isEmpty(request)) {
      await removeLabels({ writer, abort });
      session.output.write('Nothing to do: another run has done it.\n');
      return EXIT.ok;
    }
    // True while the labels must stay. A rollout is open from the moment when its plan is recorded
    // until it ends, even if no process carries it out.
    let isOpen = resumes;
    try {
      await labelNodes(session, writer, request);
      if (!resumes) {
        if (!continues && hostsOf(request).length > 0)
          await untilAborted(prepare(session, request), abort);
        if (!continues && request.leader.length + request.followers.length > 0)
          await untilAborted(takeSnapshot(session), abort);
        const run = { uid: randomUUID(), created: rfc3339(clock.now()) };
        const plan = newPlan(request, start, run, before);
        isOpen = true;
        // One write replaces the old plan. The old plan is not deleted first, because its record shows what an ended
        // rollout did not finish.
        if (!(await ifFound(writer.replace(configMaps, plan))))
          await writer.create(configMaps, plan);
      }
      const approve = approveServing({
        ...session,
        server: session.config.server,
        client: writer,
        addressesOf,
        abort,
      });
      const code = await runRollout(session, election, approve);
      isOpen = abort.aborted;
      if (code === EXIT.ok) await approve(session.manifest.hosts);
      return code;
    } finally {
      if (!isOpen) await unlabelNodes(session, writer);
    }
  });
}

/**
 * Sets KubeOne's label, so that KubeOne does not start an upgrade. KubeOne checks only control-plane Nodes. So these
 * Nodes get the label even if only workers are upgraded.
 */
async function labelNodes(
  { manifest, identity, flags, abort }: ApplySession,
  writer: KubeClient,
  request: Request,
): Promise<void> {
  const controllers = controlPlaneOf(manifest).map(({ name }) => name);
  const names = new Set([...controllers, ...request.certificates, ...hostsOf(request)]);
  await setLabels([...names], identity, flags.force === true, { writer, abort });
}

/**
 * Removes the labels of a rollout that has ended. A failure of this removal does not change the result of the rollout,
 * and the next run tries again.
 */
async function unlabelNodes({ output }: ApplySession, writer: KubeClient): Promise<void> {
  try {
    // The labels are removed even if the run was interrupted, so `abort` is not passed.
    await removeLabels({ writer });
  } catch (error) {
    output.write(
      `The label ${KUBEONE_LABEL} is still on Nodes: ${messageOf(error)}. The next run removes it.\n`,
    );
  }
}

/** Removes the labels that a killed run left, if the survey shows any. */
export async function removeLeftLabels(
  session: ApplySession,
  found: readonly Node[],
): Promise<void> {
  if (!found.some((node) => labelStateOf(node) === 'ours')) return;
  const { client, clock, abort } = session;
  await underLock(session, async (election) => {
    await removeLabels({ writer: guardedClient(client, election, clock), abort });
  });
}

/**
 * Removes outdated marks of Refit's cordons. `kubectl uncordon` removes a cordon of Refit but not its mark. If a person
 * later cordoned such a Node, the cordon would look like a cordon of Refit, and the end of the upgrade would remove it.
 */
async function removeStaleMarks(client: KubeClient, abort: AbortSignal): Promise<void> {
  // Without a transform, the Nodes keep their managed fields. These fields show who cordoned the Nodes.
  const { items } = await client.listAll(nodes, { abort });
  // A refused patch is not a failure, because another leader may have cordoned the Node and written its mark after the
  // read. A missing Node is not a failure either.
  for (const node of items.filter(isMarkStale)) {
    const label = exclusionOf(node) === 'ours' ? labelRemovalOf(node, EXCLUSION_LABEL) : [];
    const removals = [...removalOf(node, CORDON_ANNOTATION), ...label];
    const patch = client.patch(nodes, node.metadata.name, removals, {
      type: 'json',
      abort,
    });
    await unlessError((error) => isInvalid(error) || isNotFound(error))(patch);
  }
}

async function addressesOf(names: readonly string[]): Promise<string[]> {
  const found = names.map(async (name) => await lookup(name, { all: true }).catch(() => []));
  return (await Promise.all(found)).flat().map(({ address }) => address);
}

/**
 * Prepares all hosts before the first host is changed. Refit does not call it for a resumed rollout: its hosts were
 * prepared before, and half upgraded hosts might fail the checks.
 */
async function prepare(
  { manifest, shells, output }: KubeadmSession,
  request: Request,
): Promise<void> {
  const names = hostsOf(request);
  const hosts = manifest.hosts.filter(({ name }) => names.includes(name));
  output.write(
    `Staging binaries on ${names.join(', ')}; kubeadm checks each host before the first one is cordoned.\n`,
  );
  for (const leads of [true, false]) {
    const group = hosts.filter(({ name }) => request.leader.includes(name) === leads);
    await onAll(group, async (host) => {
      const failed = 'not ready, nothing was changed: ';
      const said = await outputOn(host, prepareScript(manifest, host, leads), shells, failed);
      for (const line of said.match(/^warning kubeadm: .*$/gm) ?? []) output.write(`${line}\n`);
    });
  }
}

/** Takes a snapshot of etcd before the upgrade writes anything. A person can restore this snapshot if etcd breaks. */
async function takeSnapshot({ manifest, shells, output }: KubeadmSession): Promise<void> {
  const { version, etcdSnapshots, etcdSnapshotCertificate } = manifest;
  if (etcdSnapshots === 0)
    return output.write('No snapshot of etcd is taken: etcdSnapshots is 0.\n');
  const controllers = controlPlaneOf(manifest);
  const answers = await etcdAnswers(shells, controllers);
  const host = controllers.find(({ name }) => typeof answers.get(name) === 'object');
  if (!host) return output.write(`No snapshot of etcd is taken: ${whyNoMember(answers)}.\n`);
  const script = snapshotScript(version, etcdSnapshots, etcdSnapshotCertificate);
  const said = await outputOn(
    host,
    script,
    shells,
    'no snapshot of etcd was taken, so nothing was changed: ',
  );
  return output.write(`Snapshot of etcd on ${host.name}: ${said}\n`);
}

async function locked(election: Election, { clock, output, abort }: KubeadmSession): Promise<void> {
  const since = clock.monotonic();
  let isSaid = false;
  while (!election.term()) {
    const refusal = election.refusal();
    if (refusal) throw refusal;
    if (!isSaid && clock.monotonic() - since > PATIENCE_MS && election.leader() !== '') {
      output.write(
        `Waiting for the lock ${PLACE.namespace}/${PLACE.name}: ${election.leader()} holds it.\n`,
      );
      isSaid = true;
    }
    await sleep(clock, RECHECK_MS, abort);
  }
}

async function runRollout(
  session: ApplySession,
  guard: WriteGuard,
  approve: ApproveServing,
): Promise<number> {
  const { flags, client, config, clock, log, output, manifest, shells, abort } = session;
  const done = new AbortController();
  const working = AbortSignal.any([abort, done.signal]);
  const askThrough = (ask: AskReadyz): AskReadyz => throughHosts(ask, manifest, shells);
  const controller = await prepareControllerProcess(
    {
      component: 'refit-kubeadm',
      config,
      client,
      readiness: [kubeadmReadiness],
      policyEffects: { kubeadm: policyEffects },
      dialects: ({ writer, drains }) => [
        kubeadmDialect(
          hostUpgrades({ ...session, writer, drains, approveServing: approve, abort: working }),
        ),
      ],
      guard,
      policies: 'if-installed',
      jobNamespaces: flags.jobNamespaces,
      apiPort: flags.apiPort,
      askThrough,
      clock,
      log,
    },
    working,
  );
  const running = controller.run(working);
  try {
    const connection = defined({ ...flags, kubeconfig: flags.kubeconfig ?? manifest.kubeconfig });
    const modules = controller.dialects.map((dialect) => ({
      ...texts,
      name: dialect.name,
      view: async () => await Promise.resolve(dialect),
      objects: undefined,
    }));
    const parts = { modules, clock, output, abort: working, askThrough };
    const shown = showStatus({ ...connection, output: 'text', watch: true }, parts);
    // If the controller ends although nothing aborted it, it has failed.
    const code = await Promise.race([shown, running.then(async () => await shown)]);
    if (!working.aborted) {
      await untilCleanedUp(session, controller).catch(() => undefined);
      await untilHooksEnded(session, controller).catch(() => undefined);
    }
    return code;
  } finally {
    done.abort(new Error('done'));
    await running.catch(() => undefined);
  }
}

/**
 * Waits for a limited time until the leader has removed its cordons and taints from hosts that were not upgraded. A
 * failed read here does not change the result of the upgrade.
 */
async function untilCleanedUp(
  session: KubeadmSession,
  controller: ControllerProcess,
): Promise<void> {
  const { client, clock, abort } = session;
  const deadline = clock.monotonic() + CLEAN_UP_WITHIN_MS;
  while (clock.monotonic() < deadline) {
    let isClean = true;
    for (const dialect of controller.dialects) {
      const loaded = await loadOnce(client, dialect, abort);
      const now = clock.now();
      isClean &&= loaded.plans().every((plan) => {
        const snapshot = gather(dialect, plan, loaded.world, now, { isReadOnly: true });
        return (
          nodeActionsOf(assess(snapshot, controller.policyFor(dialect, plan), now)).length === 0
        );
      });
    }
    if (isClean) return;
    await sleep(clock, RECHECK_MS, abort);
  }
}

/**
 * The most milliseconds for the script that sends a request to an API server. They include the time for opening an SSH
 * connection.
 */
const SCRIPT_MS = 20_000;

/**
 * Returns a function that sends the request to an API server from the host of that API server if the direct request
 * fails. The hosts may be behind a bastion. The kubeconfig then reaches the cluster, but not each API server.
 */
export function throughHosts(ask: AskReadyz, manifest: Manifest, shells: Shells): AskReadyz {
  return async (address, name) => {
    try {
      return await ask(address, name);
    } catch (error) {
      const host = controlPlaneOf(manifest).find((each) => each.name === name);
      if (!host) throw error;
      const result = await shells.run(host, filledScript('readyz.sh', {}), SCRIPT_MS);
      if (result.code === 0) return Number(result.stdout);
      throw new RefitError(
        'REFIT_UNREACHABLE',
        `${messageOf(error)}; on its host: ${saidBy(result)}`,
      );
    }
  };
}
