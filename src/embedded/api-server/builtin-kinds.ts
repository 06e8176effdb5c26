/** Owns the list of built-in kinds that the server knows, each with the rules of kube-apiserver 1.36 that are its own. */
import { builtinKind, textAt } from './builtin-kind.ts';
import * as shape from './builtin-shape.ts';
import { definitionKind } from './definition-kind.ts';
import { type Cause, cause } from './failure.ts';
import type { Kind } from './kind.ts';
import { labelValueFaults, qualifiedNameFaults } from './metadata.ts';
import { podKind } from './pod-kind.ts';
import type { ApiObject } from './store.ts';
import { jobKind, secretKind } from './workload-kinds.ts';

const core = { group: '', version: 'v1' };

interface NodeSpec {
  podCIDR?: string;
  podCIDRs?: string[];
  unschedulable?: boolean;
  taints?: { key: string; value?: string; effect: string; timeAdded?: string }[];
}

const nodeSpec = (node: ApiObject): NodeSpec => node['spec'] as NodeSpec;

const NOT_READY = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };

const nodeKind = builtinKind(
  { ...core, plural: 'nodes', namespaced: false, shape: shape.node },
  {
    shortNames: ['no'],
    hasStatus: true,
    unconditionalUpdate: true,
    fields: { 'spec.unschedulable': (node) => String(nodeSpec(node).unschedulable ?? false) },
    default(node, old) {
      const spec = nodeSpec(node);
      if (spec.podCIDR !== undefined) spec.podCIDRs ??= [spec.podCIDR];
      if (old) return;
      // The admission plug-in TaintNodesByCondition keeps pods away until the node was seen ready.
      const taints = spec.taints ?? [];
      if (!taints.some((taint) => taint.key === NOT_READY.key && taint.effect === NOT_READY.effect)) {
        spec.taints = [...taints, NOT_READY];
      }
      const status = node['status'] as Record<string, unknown>;
      if (status['capacity'] !== undefined) status['allocatable'] ??= status['capacity'];
    },
    validate(node, old) {
      const causes = validateTaints(nodeSpec(node).taints ?? []);
      if (!old) return causes;
      const [before, after] = [nodeSpec(old).podCIDRs, nodeSpec(node).podCIDRs];
      const moved = before !== undefined && before.join() !== after?.join();
      const why = 'node updates may not change podCIDR except from "" to valid';
      return moved ? [...causes, cause.forbidden('spec.podCIDRs', why)] : causes;
    },
  },
);

const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

function validateTaints(taints: NonNullable<NodeSpec['taints']>): Cause[] {
  const seen = new Set<string>();
  return taints.flatMap((taint, index) => {
    const at = `metadata.taints[${index}]`;
    const { key, value = '', effect, timeAdded = null } = taint;
    const causes = qualifiedNameFaults(key).map((fault) => cause.invalid(`${at}.key`, key, fault));
    causes.push(...labelValueFaults(value).map((fault) => cause.invalid(`${at}.value`, value, fault)));
    if (effect === '') causes.push(cause.required(`${at}.effect`));
    else if (!EFFECTS.includes(effect)) causes.push(cause.notSupported(`${at}.effect`, effect, EFFECTS));
    if (seen.has(`${key}:${effect}`)) {
      const shown = JSON.stringify({ Key: key, Value: value, Effect: effect, TimeAdded: timeAdded });
      const message = `Duplicate value: ${shown}: taints must be unique by key and effect pair`;
      causes.push({ reason: 'FieldValueDuplicate', message, field: at });
    }
    seen.add(`${key}:${effect}`);
    return causes;
  });
}

const namespaceKind = builtinKind(
  { ...core, plural: 'namespaces', namespaced: false, shape: shape.namespace },
  {
    shortNames: ['ns'],
    hasStatus: true,
    unconditionalUpdate: true,
    naming: 'label',
    fields: { 'status.phase': textAt('status', 'phase') },
    initial: () => ({ phase: 'Active' }),
    beginDeletion(namespace) {
      namespace['status'] = { ...(namespace['status'] as object), phase: 'Terminating' };
    },
    default(namespace, old) {
      const { metadata } = namespace;
      namespace['spec'] = old ? old['spec'] : { finalizers: ['kubernetes'] };
      if (metadata.name !== '') {
        metadata.labels = { ...metadata.labels, 'kubernetes.io/metadata.name': metadata.name };
      }
    },
  },
);

const eventKind = builtinKind(
  { ...core, plural: 'events', namespaced: true, shape: shape.event },
  {
    shortNames: ['ev'],
    createOnUpdate: true,
    unconditionalUpdate: true,
    naming: 'path',
    fields: {
      'involvedObject.kind': textAt('involvedObject', 'kind'),
      'involvedObject.namespace': textAt('involvedObject', 'namespace'),
      'involvedObject.name': textAt('involvedObject', 'name'),
      'involvedObject.uid': textAt('involvedObject', 'uid'),
      'involvedObject.apiVersion': textAt('involvedObject', 'apiVersion'),
      'involvedObject.resourceVersion': textAt('involvedObject', 'resourceVersion'),
      'involvedObject.fieldPath': textAt('involvedObject', 'fieldPath'),
      reason: textAt('reason'),
      reportingComponent: textAt('reportingComponent'),
      source: (event) => textAt('source', 'component')(event) || textAt('reportingComponent')(event),
      type: textAt('type'),
    },
    validate: validateEvent,
  },
);

/** Members that an event of the new style (with `eventTime`) must have. */
const NEW_STYLE = ['reportingComponent', 'reportingInstance', 'action', 'reason'];

function validateEvent(event: ApiObject): Cause[] {
  const own = event.metadata.namespace ?? '';
  const involved = textAt('involvedObject', 'namespace')(event);
  const clusterWide = [
    involved === '',
    ['default', event['eventTime'] === null ? 'default' : 'kube-system'].includes(own),
  ];
  const causes: Cause[] = [];
  const agrees = involved === '' ? clusterWide.every(Boolean) : event['eventTime'] !== null || involved === own;
  if (!agrees) causes.push(cause.invalid('involvedObject.namespace', involved, 'does not match event.namespace'));
  if (event['eventTime'] === null) return causes;
  return [...causes, ...NEW_STYLE.filter((field) => textAt(field)(event) === '').map((field) => cause.required(field))];
}

const leaseKind = builtinKind(
  { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', namespaced: true, shape: shape.lease },
  {
    createOnUpdate: true,
    validate(lease) {
      const { leaseDurationSeconds, leaseTransitions } = lease['spec'] as Record<string, number | undefined>;
      const causes: Cause[] = [];
      if (leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0) {
        causes.push(cause.invalid('spec.leaseDurationSeconds', leaseDurationSeconds, 'must be greater than 0'));
      }
      if (leaseTransitions !== undefined && leaseTransitions < 0) {
        causes.push(cause.invalid('spec.leaseTransitions', leaseTransitions, 'must be greater than or equal to 0'));
      }
      return causes;
    },
  },
);

const disruptionBudgetKind = builtinKind(
  {
    group: 'policy',
    version: 'v1',
    plural: 'poddisruptionbudgets',
    namespaced: true,
    shape: shape.podDisruptionBudget,
  },
  {
    shortNames: ['pdb'],
    hasStatus: true,
    generation: true,
    initial: () => ({ disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 }),
  },
);

export const builtinKinds: readonly Kind[] = [
  nodeKind,
  podKind,
  namespaceKind,
  eventKind,
  leaseKind,
  disruptionBudgetKind,
  jobKind,
  secretKind,
  definitionKind,
];
