/**
 * Creates the change of a Plan of Rancher that returns its nodes to the version before a run, or refuses with the
 * reason.
 */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import type { NodeRolloutRun } from '../../../api/refit/node-rollout.ts';
import { earlierRunsIn, versionBefore } from '../../../engine/model/earlier-versions.ts';
import { kubeletVersionOf, type Node } from '../../../kube/resources.ts';
import { failing } from '../../../util/errors.ts';
import { listed } from '../../../util/phrases.ts';
import {
  compareVersions,
  isNewerMinor,
  parseVersion,
  withPlusSign,
} from '../../../util/version.ts';
import { installsKubernetes } from '../plan/installed-version.ts';
import { hashedSecrets, latestHash } from '../plan/latest.ts';
import { HOSTNAME_LABEL, hashOn, mungeVersion, selects } from '../plan/names.ts';
import { isServer } from '../plan/version-rules.ts';

const refuse = failing('REFIT_CONTROL');

/**
 * The most Nodes that the selector of a Plan may exclude by name. Each reconcile matches the selector against each
 * Node, so the selector must stay short.
 */
const MOST_EXCLUDED = 200;

export interface CattleScene {
  readonly plan: CattlePlan;
  /** The run to roll back. */
  readonly run: NodeRolloutRun;
  /** All runs that the NodeRollout knows, the newest first. */
  readonly history: readonly NodeRolloutRun[];
  readonly nodes: readonly Node[];
  /** All Plans of the cluster. */
  readonly plans: readonly CattlePlan[];
  /** The image that the user named for the roll-back, because it can install an older version. */
  readonly image?: string | undefined;
}

export interface CattleMove {
  readonly name: string;
  readonly isServer: boolean;
  readonly from: string;
  readonly to: string;
}

export interface CattleWayBack {
  readonly moves: readonly CattleMove[];
  readonly version: string;
  /** The fields of the spec that the roll-back writes, as a merge patch. `null` removes a field. */
  readonly spec: Readonly<Record<string, unknown>>;
  /** Sentences about nodes that the roll-back does not change. */
  readonly left: readonly string[];
  /** Sentences with further information that the user needs. */
  readonly notes: readonly string[];
}

/** Returns the change of the Plan. Throws REFIT_CONTROL if the earlier version is unknown, or if the nodes cannot go back. */
export function cattleWayBack(scene: CattleScene): CattleWayBack {
  const { plan, nodes } = scene;
  const selected = nodes.filter((node) => selects(plan, node));
  const moved = selected.filter((node) => hasMoved(scene, node));
  const moves = moved.flatMap((node) => moveOf(scene, node));
  const version = onlyVersion(scene, moves);
  if (installsKubernetes(plan)) {
    refuseStuckImage(scene, version);
    refuseWrongOrder(scene, moves, version);
  }
  const coupled = coupledNotes(scene);
  const going = new Set(moves.map(({ name }) => name));
  const { excluded, left } = staying(scene, selected, going, version);
  const { spec, notes } = changeOf(scene, version, excluded);
  return { moves, version, spec, left, notes: [...notes, ...coupled] };
}

/**
 * Returns true if the run may have changed the node. This is the case if the run labelled the node as done. It is also
 * the case if the run lists the node in `status.applying`, because a Job of the run may then have started on the node.
 */
function hasMoved({ plan, run }: CattleScene, node: Node): boolean {
  const host = node.metadata.labels?.[HOSTNAME_LABEL] ?? '';
  const isOfRun = plan.status?.latestHash === run.id;
  return (
    hashOn(node, plan) === run.id || (isOfRun && plan.status?.applying?.includes(host) === true)
  );
}

function moveOf(scene: CattleScene, node: Node): CattleMove[] {
  const { plan, run } = scene;
  const { name } = node.metadata;
  const installs = installsKubernetes(plan);
  const to = installs ? recordedBefore(scene, name) : versionOfEarlierRun(scene);
  const from = (installs ? kubeletVersionOf(node) : undefined) ?? run.version ?? 'unknown';
  // The node already had this version before the run, so the run labelled it without an upgrade.
  if (mungeVersion(to) === run.version) return [];
  return [{ name, isServer: isServer(node), from, to }];
}

/**
 * Returns the version that the kubelet of the node had before the run. The run has recorded this version. For the
 * images of K3s and RKE2, it is the version to which the node must return, because these images install the version
 * that the kubelet reports. Throws REFIT_CONTROL if the run has not recorded the version.
 */
function recordedBefore({ run }: CattleScene, name: string): string {
  const record = earlierRunsIn([run])[0];
  const before = record && versionBefore(record, 'worker', name, true);
  return (
    before ??
    refuse(
      `what node ${name} ran before run ${run.id} is not recorded: set spec.version of the Plan back by hand`,
    )
  );
}

/**
 * Returns the version of the run before this run. It is used for images other than the images of K3s and RKE2, because
 * the kubelet does not report what other images install. Throws REFIT_CONTROL if the earlier run is unknown, had the
 * same version, or did not end as done.
 */
function versionOfEarlierRun({ run, history }: CattleScene): string {
  const own = history.filter(({ planUid }) => planUid === run.planUid);
  const earlier = own[own.findIndex(({ id }) => id === run.id) + 1];
  if (earlier?.version === undefined || earlier.version === '')
    return refuse(
      `the NodeRollout records no run of this Plan before ${run.id}, so the version before is unknown`,
    );
  if (earlier.phase !== 'done')
    return refuse(
      `the run before, to ${earlier.version}, ended as ${earlier.phase} and not as done, so nodes may have run different versions`,
    );
  if (earlier.version === run.version)
    return refuse(
      `the run before had the same version ${earlier.version}: the runs differ in another field of the Plan or in a Secret, which Refit does not record`,
    );
  return earlier.version;
}

/**
 * Returns the version to go back to. Throws REFIT_CONTROL if the nodes ran different versions, because a Plan has one version for all of
 * its nodes.
 */
function onlyVersion({ run }: CattleScene, moves: readonly CattleMove[]): string {
  const groups = [...Map.groupBy(moves, ({ to }) => to)];
  const [first, ...others] = groups;
  if (first === undefined) return refuse(`run ${run.id} has changed no node of the Plan`);
  if (others.length > 0)
    return refuse(
      `the nodes ran different versions before, and a Plan has one version: ${groups
        .map(([version, group]) => `${version} on ${listed(group.map(({ name }) => name))}`)
        .join('; ')}. Make one Plan for each of these groups`,
    );
  const [version] = first;
  const to = parseVersion(withPlusSign(version));
  const forward = moves.find(({ from }) => {
    const now = parseVersion(withPlusSign(from));
    return to !== undefined && now !== undefined && compareVersions(now, to) < 0;
  });
  if (forward !== undefined)
    return refuse(
      `node ${forward.name} runs ${forward.from}, and ${version} is newer: going back never upgrades a node`,
    );
  return version;
}

function refuseStuckImage({ plan, image }: CattleScene, version: string): void {
  if (image !== undefined) return;
  refuse(
    `the image ${plan.spec?.upgrade?.image} may refuse to install the older ${version}: k3s-upgrade has refused this since July 2023; then its Job fails, and the node stays cordoned. Use --image to name an image that installs an older version`,
  );
}

/**
 * Throws REFIT_CONTROL if servers would go back before workers, or if servers would go back to an older minor version.
 */
function refuseWrongOrder({ nodes }: CattleScene, moves: readonly CattleMove[], version: string) {
  const servers = moves.filter(({ isServer }) => isServer);
  const [server] = servers;
  if (server === undefined) return;
  const to = parseVersion(withPlusSign(version));
  const isOlderMinor = servers.find(({ from }) => {
    const now = parseVersion(withPlusSign(from));
    return !(now && to && !isNewerMinor(now, to));
  });
  if (isOlderMinor !== undefined)
    refuse(
      `server ${isOlderMinor.name} would go from ${isOlderMinor.from} to the older minor version ${version}, which Kubernetes does not support: restore a snapshot of the datastore instead`,
    );
  if (servers.length < moves.length)
    refuse(
      'the Plan has servers and workers, and Refit cannot roll back its workers first: make a Plan for the workers alone, and roll that Plan back first',
    );
  const newer = nodes.find((node) => {
    const kubelet = parseVersion(kubeletVersionOf(node));
    return !isServer(node) && kubelet && to && compareVersions(to, kubelet) < 0;
  });
  if (newer !== undefined)
    refuse(
      `worker ${newer.metadata.name} runs ${kubeletVersionOf(newer)}, newer than the ${version} that the servers would get: roll the Plan of the workers back first, and wait until it is complete`,
    );
}

/**
 * Returns a sentence about each Plan that waits for `plan`. Throws REFIT_CONTROL if such a Plan has already upgraded
 * nodes to the version of the run.
 */
function coupledNotes({ plan, plans, nodes, run }: CattleScene): string[] {
  const { name, namespace } = plan.metadata;
  const waiting = plans.filter(
    ({ metadata, spec }) =>
      metadata.namespace === namespace &&
      metadata.name !== name &&
      awaits(spec?.prepare?.args, name),
  );
  return waiting.map((other) => {
    const { latestHash: hash, latestVersion } = other.status ?? {};
    const ref = `cattle/${other.metadata.namespace}/${other.metadata.name}`;
    const upgraded = nodes.filter((node) => hash !== undefined && hashOn(node, other) === hash);
    if (latestVersion === run.version && upgraded.length > 0)
      refuse(
        `the Plan ${ref} waits for this one and has upgraded ${listed(upgraded.map(({ metadata }) => metadata.name))}: workers go back before servers, so run refit rollback ${ref} first`,
      );
    return `The Plan ${ref} waits until this one is complete at ${latestVersion ?? 'its version'}. Set the version of ${ref} back as well, because it waits forever otherwise.`;
  });
}

function awaits(args: readonly string[] = [], name: string): boolean {
  return args[0] === 'prepare' && args[1] === name;
}

/**
 * Returns the nodes that the changed Plan must exclude. The Plan selects these nodes and would upgrade them, but the
 * roll-back does not include them. If the label of a node already has the hash of the older version, the node needs no
 * exclusion. Operators cannot read Secrets. So if the hash includes Secrets, the hash is unknown, and all these nodes
 * are excluded.
 */
function staying(
  { plan, run }: CattleScene,
  selected: readonly Node[],
  going: ReadonlySet<string>,
  version: string,
): { readonly excluded: readonly Node[]; readonly left: readonly string[] } {
  const back = { ...plan, spec: { ...plan.spec, version } } as CattlePlan;
  const hash =
    hashedSecrets(plan).length > 0 ? undefined : latestHash(back, mungeVersion(version), []);
  const stay = selected.filter(({ metadata }) => !going.has(metadata.name));
  const excluded = stay.filter((node) => hash === undefined || hashOn(node, plan) !== hash);
  if (excluded.length > MOST_EXCLUDED)
    refuse(
      `run ${run.id} did not change ${excluded.length} nodes of the Plan, and the Plan can exclude at most ${MOST_EXCLUDED}: make a Plan that selects only the nodes that go back`,
    );
  const left = stay.map((node) =>
    excluded.includes(node)
      ? `${node.metadata.name} was not changed by the run; spec.nodeSelector excludes it now, because the Plan would upgrade it otherwise`
      : `${node.metadata.name} was not changed by the run, and already counts as done at ${version}`,
  );
  return { excluded, left };
}

function changeOf({ plan, image }: CattleScene, version: string, excluded: readonly Node[]) {
  const { channel = '', nodeSelector, prepare, upgrade } = plan.spec ?? {};
  const notes: string[] = [];
  const spec: Record<string, unknown> = { version };
  if (channel !== '' && (plan.spec?.version ?? '') === '')
    notes.push(
      'spec.version now counts in place of spec.channel. Remove spec.version to follow the channel again.',
    );
  if (image !== undefined) spec['upgrade'] = { image };
  if (prepare?.args?.[0] === 'prepare') {
    spec['prepare'] = null;
    notes.push(
      `spec.prepare is removed, because it waits until Plan ${prepare.args[1]} is complete at the same version, and that Plan goes back only after this one. Add spec.prepare again before the next upgrade.`,
    );
  }
  if (excluded.length > 0) {
    const values = excluded.map(({ metadata }) => metadata.labels?.[HOSTNAME_LABEL] ?? '');
    const matchExpressions = [
      ...(nodeSelector?.matchExpressions ?? []),
      { key: HOSTNAME_LABEL, operator: 'NotIn', values: values.toSorted() },
    ];
    spec['nodeSelector'] = { matchExpressions };
    notes.push('Remove the exclusion from spec.nodeSelector before the next upgrade.');
  }
  notes.push(
    `The image ${image ?? upgrade?.image} must be able to install the older ${version}: Refit starts it with that version and cannot know what it does.`,
  );
  return { spec, notes };
}
