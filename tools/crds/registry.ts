/** The custom kinds that Refit installs, with the columns that kubectl shows. CRDs, their documentation and their tests use this list. */

import { planKind } from '../../src/api/autopilot/plan.ts';
import { updateConfigKind } from '../../src/api/autopilot/update-config.ts';
import { statusShardKind } from '../../src/api/refit/status-shard.ts';
import { updaterSetKind } from '../../src/api/refit/updater-set.ts';
import { cattlePlanKind, nodeRolloutKind, upgradePolicyKind } from '../../src/api/schemas.ts';
import { controlNodeKind } from './control-node.ts';
import type { DefinedKind, PrinterColumn } from './definition.ts';

const AGE: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };

export const CUSTOM_KINDS: readonly DefinedKind[] = [
  {
    ...controlNodeKind,
    columns: [{ name: 'Version', type: 'string', jsonPath: '.status.k0sVersion' }, AGE],
  },
  {
    ...planKind,
    // No column shows the number of done nodes, because a Plan has no field for it. NodeRollouts show it. The sentence
    // about the state is in an annotation, because the only text in the status is part of the record.
    columns: [
      { name: 'State', type: 'string', jsonPath: '.status.state' },
      { name: 'Version', type: 'string', jsonPath: '.spec.commands[*].k0supdate.version' },
      {
        name: 'Message',
        type: 'string',
        jsonPath: String.raw`.metadata.annotations.upgrade\.refit\.dev/message`,
      },
      {
        name: 'Bundle',
        type: 'string',
        jsonPath: '.spec.commands[*].airgapupdate.version',
        priority: 1,
      },
      AGE,
    ],
  },
  { ...updateConfigKind, columns: [] },
  {
    ...cattlePlanKind,
    columns: [
      { name: 'Image', type: 'string', jsonPath: '.spec.upgrade.image' },
      { name: 'Channel', type: 'string', jsonPath: '.spec.channel' },
      { name: 'Version', type: 'string', jsonPath: '.spec.version' },
      {
        name: 'Complete',
        type: 'string',
        jsonPath: ".status.conditions[?(@.type=='Complete')].status",
      },
      { name: 'Message', type: 'string', jsonPath: ".status.conditions[?(@.message!='')].message" },
      { name: 'Applying', type: 'string', jsonPath: '.status.applying', priority: 10 },
    ],
  },
  {
    ...upgradePolicyKind,
    columns: [
      {
        name: 'Accepted',
        type: 'string',
        jsonPath: ".status.conditions[?(@.type=='Accepted')].status",
      },
      { name: 'Paused', type: 'boolean', jsonPath: '.spec.paused' },
      { name: 'Covers', type: 'string', jsonPath: '.status.covers' },
      {
        name: 'Message',
        type: 'string',
        jsonPath: ".status.conditions[?(@.type=='Accepted')].message",
        priority: 1,
      },
      AGE,
    ],
  },
  {
    ...nodeRolloutKind,
    columns: [
      { name: 'Kind', type: 'string', jsonPath: '.spec.plan.kind' },
      { name: 'Plan', type: 'string', jsonPath: '.spec.plan.name' },
      { name: 'Version', type: 'string', jsonPath: '.status.version' },
      { name: 'Done', type: 'string', jsonPath: '.status.progress' },
      { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
      { name: 'Waiting', type: 'string', jsonPath: '.status.waiting.reason' },
      { name: 'ETA', type: 'string', jsonPath: '.status.eta.at' },
      // The API server shows the age of the estimate, because nobody removes an estimate after the death of its leader.
      { name: 'Estimated', type: 'date', jsonPath: '.status.eta.asOf' },
      { name: 'Message', type: 'string', jsonPath: '.status.waiting.message', priority: 1 },
      AGE,
    ],
  },
  {
    ...statusShardKind,
    columns: [
      { name: 'Command', type: 'integer', jsonPath: '.command' },
      { name: 'List', type: 'string', jsonPath: '.list' },
      AGE,
    ],
  },
  {
    ...updaterSetKind,
    columns: [
      { name: 'Updaters', type: 'string', jsonPath: '.spec.updaters[*].name' },
      { name: 'Uncovered', type: 'string', jsonPath: '.spec.uncovered' },
      {
        name: 'Covered',
        type: 'string',
        jsonPath: ".status.conditions[?(@.type=='Covered')].status",
      },
      {
        name: 'Message',
        type: 'string',
        jsonPath: ".status.conditions[?(@.type=='Covered')].message",
        priority: 1,
      },
      AGE,
    ],
  },
];
