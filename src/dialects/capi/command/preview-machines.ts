/**
 * Implements `refit preview --cluster`: what Refit would answer Cluster API about each Machine, and what applies to its
 * owner then. Writes nothing.
 */
import type { Triple } from '../../../api/capi/hooks.ts';
import {
  CONTROL_PLANE_LABEL,
  type Machine,
  machines,
  SET_LABELS,
} from '../../../api/capi/machine.ts';
import type { CommandParts, PreviewFlags } from '../../../cli/contract/object-commands.ts';
import { table } from '../../../cli/phrases.ts';
import { harmless } from '../../../cli/status/harmless.ts';
import { connect } from '../../../cli/status/status-session.ts';
import { listPolicies } from '../../../engine/policy/choose-policy.ts';
import { ifFound } from '../../../kube/status-error.ts';
import { createClient } from '../../../kube/transport/http-client.ts';
import { EXIT, messageOf, RefitError } from '../../../util/errors.ts';
import { silentLogger } from '../../../util/log.ts';
import { parseVersion } from '../../../util/version.ts';
import { type CanParts, canUpdate } from '../hooks/updaters/answer-can.ts';
import { machineOwners } from '../plan/machine-owners.ts';
import { machineRules } from '../plan/machine-rules.ts';
import { type OwnerPreviews, ownerLines, ownerPreviews } from './preview-owners.ts';
import { workloadConfigOf } from './workload-cluster.ts';

/** The maximum time in milliseconds that Cluster API allows for a call of the hook. */
const CALL_MS = 10_000;

const isController = ({ metadata }: Machine): boolean =>
  metadata.labels?.[CONTROL_PLANE_LABEL] !== undefined;

export async function previewMachines(
  flags: PreviewFlags,
  { clock, output, abort }: CommandParts,
): Promise<number> {
  const { cluster, to: version = '', namespace = 'default' } = flags;
  const wanted =
    'expected the name of a Cluster and a version, such as --cluster blue --to v1.36.3';
  if (cluster === undefined || !parseVersion(version))
    throw new RefitError(
      'REFIT_USAGE',
      `--cluster is "${cluster ?? ''}" and --to is "${version}"; ${wanted}`,
    );
  const userAgent = 'refit-preview';
  using client = await connect(flags, userAgent);
  const listed = await ifFound(client.listAll(machines, { namespace, abort }));
  const hint = 'use the kubeconfig of the management cluster';
  if (!listed)
    throw new RefitError('REFIT_NO_CRD', 'this cluster has no Machines of Cluster API', { hint });
  const own = listed.items.filter(({ spec }) => spec?.clusterName === cluster);
  if (own.length === 0)
    throw new RefitError('REFIT_CONTROL', `Cluster ${namespace}/${cluster} has no Machines`);
  const config = await workloadConfigOf(client, { cluster, namespace }, abort);
  using workload = createClient(config, { userAgent });
  const owners = ownerPreviews({
    management: client,
    workload,
    owners: machineOwners(client, 'owner', clock),
    policies: (await listPolicies(workload, abort)) ?? [],
    rulesOf: machineRules(client, silentLogger),
    clock,
  });
  const now = { workload };
  const about = { status: 200, body: JSON.stringify({ gitVersion: version }) };
  // Cluster API upgrades the control plane first. So workers are judged as if the API server already had the new version.
  const then = { workload: { ...workload, raw: async () => await Promise.resolve(about) } };
  const parts: CanParts = {
    // The hooks record their answers, but a preview must not write. So patches are discarded.
    management: { ...client, patch: async <T>(): Promise<T> => await Promise.resolve({} as T) },
    callUpdater: async () =>
      await Promise.reject(new Error('only the extension can ask this updater')),
    clusterOf: (machine) => (isController(machine) || !own.some(isController) ? now : then),
    clock,
    abort,
    log: silentLogger,
    ownerWait: owners.note,
  };
  const verdicts = new Map<string, Promise<Verdict>>();
  const look = async (machine: Machine) => {
    const { metadata, spec, status } = machine;
    // All Machines of a MachineSet share one verdict, because Cluster API asks once about all of them.
    const asked = `${setOf(machine)?.name ?? metadata.name} ${spec?.version}`;
    const verdict = verdicts.getOrInsertComputed(
      asked,
      async () => await judge(parts, machine, version),
    );
    const row = { machine: metadata.name, node: status?.nodeRef?.name ?? '', ...(await verdict) };
    return { machine, row };
  };
  const found = await Promise.all(own.map(look));
  const { columns } = output.size();
  const text =
    flags.output === 'json' ? jsonOf(found, owners) : textOf(found, owners, columns).join('\n');
  output.write(`${text}\n`);
  return EXIT.ok;
}

interface Found {
  readonly machine: Machine;
  readonly row: Verdict & { readonly machine: string; readonly node: string };
}

function jsonOf(found: readonly Found[], owners: OwnerPreviews): string {
  const rows = found.map(({ machine, row }) => {
    const { owner, policy, waves = [], waits } = owners.of(machine) ?? {};
    return { ...row, owner, policy, waves: waves.length === 0 ? undefined : waves, waits };
  });
  return JSON.stringify(harmless(rows), undefined, 2);
}

function textOf(found: readonly Found[], owners: OwnerPreviews, columns: number): string[] {
  const rows = harmless(found.map(({ row }) => row));
  const cells = rows.map(({ machine, node, outcome, why }) => [machine, node, outcome, why]);
  const about = owners.all().map((each) => ownerLines(harmless(each)));
  const unseen = harmless(owners.unseen()).map((what) => `unknown: ${what}`);
  return [
    ...table(['MACHINE', 'NODE', 'OUTCOME', 'WHY'], cells, columns),
    ...about.flatMap((lines) => ['', ...lines]),
    ...(unseen.length === 0 ? [] : ['', ...unseen]),
  ];
}

function setOf({ metadata }: Machine) {
  return metadata.ownerReferences?.find(({ kind }) => kind === 'MachineSet');
}

interface Verdict {
  readonly outcome: 'in place' | 'replaced' | 'waits' | 'stays';
  readonly why: string;
}

/** Returns what Cluster API would do with a Machine that gets `version`. Never rejects. */
async function judge(parts: CanParts, machine: Machine, version: string): Promise<Verdict> {
  const { metadata, spec } = machine;
  if (spec?.version === version) return { outcome: 'stays', why: 'it has this version already' };
  const set = setOf(machine);
  const deployment = metadata.labels?.[SET_LABELS.deployment];
  if (!isController(machine) && !(set && deployment))
    return { outcome: 'stays', why: 'it belongs to no MachineDeployment' };
  const at = (wanted: Machine['spec']): Triple => {
    if (!set) return { machine: { ...machine, kind: 'Machine', spec: wanted } };
    const template = { metadata, spec: wanted };
    return {
      machineSet: {
        kind: 'MachineSet',
        metadata: { ...metadata, name: set.name },
        spec: { template },
      },
    };
  };
  const request = { current: at(spec), desired: at({ ...spec, version }) };
  try {
    const answer = await canUpdate(
      parts,
      set ? 'CanUpdateMachineSet' : 'CanUpdateMachine',
      request,
      CALL_MS,
    );
    const isClaim = (answer.machinePatch ?? answer.machineSetPatch) !== undefined;
    return { outcome: isClaim ? 'in place' : 'replaced', why: answer.message ?? '' };
  } catch (error) {
    return { outcome: 'waits', why: messageOf(error) };
  }
}
