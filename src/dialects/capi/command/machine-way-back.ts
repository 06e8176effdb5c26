/**
 * Finds the change that rolls Machines of Cluster API back to the version before their last update. The change is to
 * the object that decides the version of the Machines. Only a user may make it, because it affects all Machines of that
 * object. Refit writes nothing.
 */
import {
  type Cluster,
  CONTROL_PLANE_LABEL,
  type ExtensionConfig,
  type Machine,
  type Rollout,
  TOPOLOGY_LABEL,
  UNCHECKED_VERSION_ANNOTATION,
} from '../../../api/capi/machine.ts';
import type { NodeRollout } from '../../../api/refit/node-rollout.ts';
import { patchCommand } from '../../../cli/upgrade/patch-command.ts';
import { earlierRunsIn, versionBefore } from '../../../engine/model/earlier-versions.ts';
import type { Role } from '../../../engine/model/rollout.ts';
import type { KubeObject } from '../../../kube/resources.ts';
import { failing } from '../../../util/errors.ts';
import { ownMember } from '../../../util/own-member.ts';
import { counted, listed } from '../../../util/phrases.ts';
import { compareVersions, parseVersion } from '../../../util/version.ts';
import { mayBePartOf } from '../../../versions/release-parts.ts';
import { wayBackOfNode } from '../../../versions/way-back.ts';
import { existedAtStart, recordsOf, runsOf } from './machine-records.ts';
import { nested } from './version-paths.ts';

const refuse = failing('REFIT_CONTROL');

/** The object from which Cluster API takes the version of Machines. */
export interface Owner {
  readonly object: KubeObject;
  readonly kind: string;
  /** The resource in the form that kubectl accepts, such as `machinedeployments.cluster.x-k8s.io`. */
  readonly resource: string;
  readonly apiVersion: string;
  /** The path of the version in the object. */
  readonly path: readonly string[];
  readonly replicas?: number | undefined;
  readonly rollout?: Rollout | undefined;
}

export interface MachineScene {
  readonly owner: Owner;
  /** The Machines of the owner. */
  readonly machines: readonly Machine[];
  /** The Machine that the user named; undefined if the user named the owner of the Machines. */
  readonly named?: string | undefined;
  readonly cluster?: Cluster | undefined;
  /** The versions of the control-plane Machines of the Cluster. */
  readonly servers: readonly (string | undefined)[];
  /** The NodeRollouts of Machines and of their owners. */
  readonly rollouts: readonly NodeRollout[];
  /**
   * The registration of the extension that updates Machines in place; undefined if there is none, or if the user may
   * not read it.
   */
  readonly extension?: ExtensionConfig | undefined;
  readonly run?: string | undefined;
  readonly now: number;
}

export interface MachineMove {
  readonly machine: string;
  readonly node: string;
  readonly from: string;
  readonly to: string;
  /** A clause that says whether the record proves that this Machine ran the version `to`. */
  readonly note: string;
}

export interface OwnerChange {
  readonly owner: Owner;
  readonly version: string;
  readonly moves: readonly MachineMove[];
  /** The change as a merge patch. */
  readonly patch: Readonly<Record<string, unknown>>;
  /** Sentences about what the user must do first, and about what is lost. */
  readonly first: readonly string[];
  readonly lost: readonly string[];
}

/** Returns the change of the owner. Throws REFIT_CONTROL if the earlier version is unknown, or if the Machines cannot go back. */
export function machineWayBack(scene: MachineScene): OwnerChange {
  const { owner, machines, servers, now } = scene;
  const version = wantedVersion(scene);
  const moves = machines.flatMap((machine) => moveOf(scene, machine, version));
  for (const machine of machines) {
    const { name } = machine.metadata;
    const to = machine.spec?.version ?? '';
    const node = { name, role: roleOf(machine), from: version, to, hasDownload: true };
    const way = wayBackOfNode(node, servers, now);
    if (!mayBePartOf(version, to) && way.state === 'closed')
      refuse(`the roll-back of Machine ${name} to ${version} is not possible: ${way.message}`);
  }
  refuseTopology(scene, version);
  const patch = nested(owner.path, version);
  return {
    owner,
    version,
    moves,
    patch,
    first: [...pauseNotes(scene), ...unendedNotes(scene), ...ruleNotes(scene)],
    lost: lostWith(scene, version),
  };
}

/**
 * Returns the kubectl command that makes the change. Single quotes around the patch are enough, because its only text is a version, which
 * contains no single quote.
 */
export function patchLine({ owner, patch }: Pick<OwnerChange, 'owner' | 'patch'>): string {
  return patchCommand(owner.resource, owner.object, patch);
}

/** Matches a version that is safe in a command line and in a patch. Other versions are refused. */
const VERSION = /^v\d+\.\d+\.\d+(?:[-+][\w.+-]*)?$/;

function wantedVersion(scene: MachineScene): string {
  const { machines, named, owner } = scene;
  const asked = machines.filter(({ metadata }) => named === undefined || metadata.name === named);
  const known = asked.flatMap((machine) => {
    const { version } = beforeOf(scene, machine);
    const from = machine.spec?.version ?? '';
    return version === undefined || mayBePartOf(version, from)
      ? []
      : [{ name: machine.metadata.name, version, from }];
  });
  const [first] = known;
  if (first === undefined) {
    const [only] = asked;
    const why =
      only !== undefined && asked.length === 1
        ? beforeOf(scene, only).problem
        : `Refit has recorded no update of its ${asked.length} Machines`;
    return refuse(
      `the earlier version of ${named === undefined ? title(owner) : `Machine ${named}`} is unknown: ${why}. If you know the version, set ${field(owner)} of ${title(owner)} back by hand`,
    );
  }
  const groups = [...Map.groupBy(known, ({ version }) => version)];
  if (groups.length > 1)
    return refuse(
      `the Machines of ${title(owner)} ran different versions before, and it has one version: ${groups
        .map(([version, group]) => `${version} on ${listed(group.map(({ name }) => name))}`)
        .join('; ')}. Name one of them as machine/NAME, and its version is taken`,
    );
  const to = parseVersion(first.version);
  const from = parseVersion(first.from);
  if (!VERSION.test(first.version) || !to)
    return refuse(`the record has ${JSON.stringify(first.version)}, which is not a version`);
  if (from && compareVersions(from, to) < 0)
    return refuse(
      `Machine ${first.name} has ${first.from}, and ${first.version} is newer: going back never upgrades a Machine`,
    );
  return first.version;
}

interface Before {
  readonly version?: string | undefined;
  readonly problem: string;
}

/**
 * Returns the version that the Machine ran before the run that the user named. If the user named no run, this is the
 * run that installed the present version of the Machine. The version is undefined if the record does not contain it.
 */
function beforeOf(scene: MachineScene, machine: Machine): Before {
  const { rollouts, run: wanted } = scene;
  const present = machine.spec?.version;
  const history = runsOf(rollouts, machine);
  const run =
    wanted === undefined
      ? history.find(({ version }) => version === present)
      : history.find(({ id }) => id === wanted);
  if (run === undefined && wanted !== undefined)
    return {
      problem: `its NodeRollout has no run ${wanted}; it has ${listed(history.map(({ id }) => id)) || 'none'}`,
    };
  if (run === undefined)
    return { problem: `Refit has recorded no update of it to ${present ?? 'its version'}` };
  const record = earlierRunsIn([run])[0];
  const node = machine.status?.nodeRef?.name ?? '';
  const version =
    record && versionBefore(record, roleOf(machine), node, existedAtStart(machine, run));
  if (version === undefined || !KUBELET_OF_K0S.test(version))
    return { version, problem: `the record of run ${run.id} does not contain it` };
  const problem = `the record has ${version}, which its kubelet reported, but not the release of k0s`;
  return { version: releaseOf(scene, version), problem };
}

/** Matches the version that a kubelet of k0s reports: it lacks the last number of the k0s release. */
const KUBELET_OF_K0S = /\+k0s$/;

/**
 * Returns the k0s release whose kubelet reports this version; undefined unless the scene contains exactly one such
 * release.
 */
function releaseOf({ machines, rollouts }: MachineScene, kubelet: string): string | undefined {
  const known = new Set([
    ...machines.map(({ spec }) => spec?.version ?? ''),
    ...rollouts.flatMap(({ status }) => (status?.history ?? []).map(({ version = '' }) => version)),
  ]);
  const releases = [...known].filter((each) => each !== kubelet && mayBePartOf(kubelet, each));
  return releases.length === 1 ? releases[0] : undefined;
}

function moveOf(scene: MachineScene, machine: Machine, version: string): MachineMove[] {
  const from = machine.spec?.version ?? 'unknown';
  if (mayBePartOf(version, from)) return [];
  const before = beforeOf(scene, machine);
  const { name } = machine.metadata;
  const node = machine.status?.nodeRef?.name ?? '';
  return [{ machine: name, node, from, to: version, note: noteOn(before, version) }];
}

function noteOn({ version: before, problem }: Before, version: string): string {
  if (before === version) return 'ran this version before';
  if (before === undefined) return `may never have run this version: ${problem}`;
  return `ran ${before} before, not this version`;
}

/**
 * Throws REFIT_CONTROL if a Cluster with a topology decides the version. The topology controller overwrites the version of the objects
 * that it owns, and the webhook of Cluster API refuses an older version in the Cluster.
 */
function refuseTopology({ owner, cluster }: MachineScene, version: string): void {
  if (owner.kind !== 'Cluster') return;
  const annotations = cluster?.metadata.annotations ?? {};
  if (ownMember(annotations, UNCHECKED_VERSION_ANNOTATION) !== undefined) return;
  refuse(
    `a return to ${version} is not possible: ${title(owner)} decides the version in ${field(owner)}, and Cluster API refuses to lower it. The annotation ${UNCHECKED_VERSION_ANNOTATION} on the Cluster allows it, but also switches off all other checks of its versions`,
  );
}

function pauseNotes({ cluster, owner }: MachineScene): string[] {
  if (cluster?.spec?.paused !== true) return [];
  const { name, namespace } = cluster.metadata;
  return [
    `Cluster ${namespace}/${name} is paused: Cluster API carries out the change of ${title(owner)} when the pause ends.`,
  ];
}

function unendedNotes({ machines, rollouts }: MachineScene): string[] {
  const unended = machines.flatMap((machine) => {
    const [latest] = recordsOf(rollouts, machine);
    const phase = latest?.status?.phase;
    if (latest === undefined || phase === undefined || phase === 'done') return [];
    const { plan } = latest.spec;
    const { name, namespace } = machine.metadata;
    const whose =
      plan.kind === 'Machine'
        ? `Machine ${name}`
        : `the Machines of ${plan.kind} ${namespace}/${plan.name}`;
    return `The last update of ${whose} is recorded as ${phase}, not as done. Cluster API gives a Machine another version only after its update has succeeded: use refit why and refit retry, or delete the Machine, which replaces it.`;
  });
  return [...new Set(unended)];
}

/**
 * Returns a sentence about the setting that allows older versions; nothing if the setting is known to be set. Without
 * the setting, Refit refuses to update the Machines in place, and Cluster API replaces them.
 */
function ruleNotes({ extension }: MachineScene): string[] {
  const refusal =
    'Without the setting allowedVersionRules: Downgrade, Refit refuses the older version, and Cluster API replaces the Machines; if there is an UpdaterSet, the Machines wait instead.';
  if (extension === undefined)
    return [`${refusal} Check the ExtensionConfig of Refit: this command could not read it.`];
  const { name } = extension.metadata;
  const allowed = rulesIn(extension);
  if (allowed.includes('Downgrade')) return [];
  const allowedVersionRules = [...allowed, 'Downgrade'].join(',');
  const patch = JSON.stringify({ spec: { settings: { allowedVersionRules } } });
  return [
    `${refusal} Set it first, and take it back afterwards: kubectl patch extensionconfigs.runtime.cluster.x-k8s.io ${name} --type=merge -p '${patch}'`,
  ];
}

function rulesIn({ spec }: ExtensionConfig): string[] {
  const text = ownMember(spec?.settings, 'allowedVersionRules') ?? '';
  // The names become part of a command line, so texts with other characters are left out.
  return text
    .split(',')
    .map((rule) => rule.trim())
    .filter((rule) => /^\w+$/.test(rule));
}

function lostWith(scene: MachineScene, version: string): string[] {
  const { owner, machines } = scene;
  const isControlPlane = machines.some((machine) => roleOf(machine) === 'controller');
  return [
    `These Machines lose the fixes and features that are newer than ${version}.`,
    ...(isControlPlane ? ['Objects in etcd and the version of etcd do not change.'] : []),
    ...replacementNotes(owner),
    'A Machine that Cluster API replaces loses its disk: everything that pods keep on the node itself.',
    'Refit records versions only. If the upgrade changed other fields of the owner or of its templates, such as an image, set them back as well.',
  ];
}

function replacementNotes({ kind, object, rollout, replicas }: Owner): string[] {
  const { name } = object.metadata;
  const { type, rollingUpdate } = rollout?.strategy ?? {};
  const surge = rollingUpdate?.maxSurge ?? 1;
  if (type === 'OnDelete')
    return [
      `${kind} ${name} has the strategy OnDelete: no Machine goes back in place. A Machine gets the older version when you delete it.`,
    ];
  if (kind !== 'MachineDeployment' && kind !== 'KubeadmControlPlane') return [];
  if (kind === 'KubeadmControlPlane' && (replicas ?? 3) < 3)
    return [
      `${kind} ${name} has ${counted(replicas ?? 0, 'replica')}: an update in place without a new Machine needs three. With fewer, Cluster API replaces at least one Machine.`,
    ];
  if (surge === 0 || surge === '0' || surge === '0%') return [];
  return [
    `maxSurge of ${kind} ${name} is ${surge}: Cluster API creates that many Machines and deletes as many. Set maxSurge to 0 first${kind === 'MachineDeployment' ? ', and maxUnavailable to 1,' : ''} to keep every Machine.`,
  ];
}

export function roleOf({ metadata }: Machine): Role {
  return ownMember(metadata.labels ?? {}, CONTROL_PLANE_LABEL) === undefined
    ? 'worker'
    : 'controller';
}

export function isOfTopology({ metadata }: KubeObject): boolean {
  return ownMember(metadata.labels ?? {}, TOPOLOGY_LABEL) !== undefined;
}

export function title({ kind, object }: Pick<Owner, 'kind' | 'object'>): string {
  return `${kind} ${object.metadata.namespace}/${object.metadata.name}`;
}

export function field({ path }: Pick<Owner, 'path'>): string {
  return path.join('.');
}
