/** The built-in kinds, each with its special rules in kube-apiserver 1.36. */

import { type Cause, cause } from '../failure.ts';
import type { ApiObject } from '../store.ts';
import { labelValueFaults, qualifiedNameFaults } from '../writes/metadata.ts';
import { builtinKind, textAt, textFields } from './builtin-kind.ts';
import * as shape from './builtin-shape.ts';
import { configMapKind } from './config-kind.ts';
import { definitionKind } from './definition-kind.ts';
import type { Kind } from './kind.ts';
import { podKind } from './pod-kind.ts';
import { jobKind, secretKind } from './workload-kinds.ts';

const core = { group: '', version: 'v1' };

interface NodeSpec {
  podCIDR?: string;
  podCIDRs?: string[];
  taints?: { key: string; value?: string; effect: string; timeAdded?: string }[];
}

const nodeSpec = (node: ApiObject): NodeSpec => node['spec'] as NodeSpec;

const NOT_READY = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };

const nodeKind = builtinKind({ ...core, plural: 'nodes', namespaced: false }, shape.node, {
  shortNames: ['no'],
  unconditionalUpdate: true,
  fields: { 'spec.unschedulable': (node) => textAt('spec.unschedulable')(node) || 'false' },
  status(node) {
    const status = node['status'] as { capacity?: unknown; allocatable?: unknown };
    if (status.capacity !== undefined) status.allocatable ??= status.capacity;
    return status;
  },
  default(node, old) {
    const spec = nodeSpec(node);
    if (spec.podCIDR !== undefined) spec.podCIDRs ??= [spec.podCIDR];
    // The admission plug-in TaintNodesByCondition keeps pods away from a new node until the node is Ready.
    const { taints = [] } = spec;
    const tainted = taints.some(
      ({ key, effect }) => key === NOT_READY.key && effect === NOT_READY.effect,
    );
    if (old === undefined && !tainted) spec.taints = [...taints, NOT_READY];
  },
  validate(node, old) {
    const causes = validateTaints(nodeSpec(node).taints ?? []);
    const before = old && nodeSpec(old).podCIDRs;
    if (before === undefined || before.join() === nodeSpec(node).podCIDRs?.join()) return causes;
    return [
      ...causes,
      cause.forbidden(
        'spec.podCIDRs',
        'node updates may not change podCIDR except from "" to valid',
      ),
    ];
  },
});

const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

function validateTaints(taints: NonNullable<NodeSpec['taints']>): Cause[] {
  const seen = new Set<string>();
  return taints.flatMap(({ key, value = '', effect, timeAdded = null }, index) => {
    const at = `metadata.taints[${index}]`;
    const causes = qualifiedNameFaults(key).map((fault) => cause.invalid(`${at}.key`, key, fault));
    causes.push(
      ...labelValueFaults(value).map((fault) => cause.invalid(`${at}.value`, value, fault)),
    );
    if (effect === '') causes.push(cause.required(`${at}.effect`));
    else if (!EFFECTS.includes(effect))
      causes.push(cause.notSupported(`${at}.effect`, effect, EFFECTS));
    const taint = { Key: key, Value: value, Effect: effect, TimeAdded: timeAdded };
    if (seen.has(`${key}:${effect}`)) {
      causes.push(cause.duplicate(at, taint, ': taints must be unique by key and effect pair'));
    }
    seen.add(`${key}:${effect}`);
    return causes;
  });
}

const namespaceKind = builtinKind(
  { ...core, plural: 'namespaces', namespaced: false },
  shape.namespace,
  {
    shortNames: ['ns'],
    unconditionalUpdate: true,
    naming: 'label',
    fields: textFields('status.phase'),
    status: () => ({ phase: 'Active' }),
    default(namespace, old) {
      const { metadata } = namespace;
      namespace['spec'] = old ? old['spec'] : { finalizers: ['kubernetes'] };
      if (metadata.name !== '')
        metadata.labels = { ...metadata.labels, 'kubernetes.io/metadata.name': metadata.name };
    },
    beginDeletion(namespace) {
      namespace['status'] = { ...(namespace['status'] as object), phase: 'Terminating' };
    },
  },
);

const INVOLVED = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'];

const eventKind = builtinKind({ ...core, plural: 'events', namespaced: true }, shape.event, {
  shortNames: ['ev'],
  createOnUpdate: true,
  unconditionalUpdate: true,
  naming: 'path',
  fields: {
    ...textFields(
      ...INVOLVED.map((member) => `involvedObject.${member}`),
      'reason',
      'reportingComponent',
      'type',
    ),
    source: (event) => textAt('source.component')(event) || textAt('reportingComponent')(event),
  },
  validate: validateEvent,
});

/** The members that an event of the new style must have. An event of the new style has an `eventTime`. */
const NEW_STYLE = ['reportingComponent', 'reportingInstance', 'action', 'reason'];

function validateEvent(event: ApiObject): Cause[] {
  const { namespace: own = '' } = event.metadata;
  const involved = textAt('involvedObject.namespace')(event);
  const newStyle = event['eventTime'] !== null;
  const clusterWide = own === 'default' || (newStyle && own === 'kube-system');
  const agrees = involved === '' ? clusterWide : newStyle || involved === own;
  const missing = newStyle ? NEW_STYLE.filter((field) => textAt(field)(event) === '') : [];
  const reporter = textAt('reportingComponent')(event);
  const faults = newStyle ? qualifiedNameFaults(reporter) : [];
  return [
    ...(agrees
      ? []
      : [cause.invalid('involvedObject.namespace', involved, 'does not match event.namespace')]),
    ...missing.map((field) => cause.required(field)),
    ...faults.map((fault) => cause.invalid('reportingComponent', reporter, fault)),
  ];
}

const leaseKind = builtinKind(
  { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', namespaced: true },
  shape.lease,
  {
    createOnUpdate: true,
    validate(lease) {
      const { leaseDurationSeconds: seconds = 1, leaseTransitions = 0 } = lease['spec'] as Record<
        string,
        number
      >;
      const causes: Cause[] = [];
      if (seconds <= 0)
        causes.push(cause.invalid('spec.leaseDurationSeconds', seconds, 'must be greater than 0'));
      const rule = 'must be greater than or equal to 0';
      if (leaseTransitions < 0)
        causes.push(cause.invalid('spec.leaseTransitions', leaseTransitions, rule));
      return causes;
    },
  },
);

const disruptionBudgetKind = builtinKind(
  { group: 'policy', version: 'v1', plural: 'poddisruptionbudgets', namespaced: true },
  shape.podDisruptionBudget,
  {
    shortNames: ['pdb'],
    generation: true,
    status: () => ({
      disruptionsAllowed: 0,
      currentHealthy: 0,
      desiredHealthy: 0,
      expectedPods: 0,
    }),
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
  configMapKind,
  definitionKind,
];
