/** All scenes of the table. */
import { CONTROL_SCENES } from './controls.ts';
import { DRAIN_SCENES } from './drains.ts';
import { FAILURE_SCENES } from './failures.ts';
import { GATE_SCENES } from './gates.ts';
import { HOOK_SCENES } from './hooks.ts';
import { LIMIT_SCENES } from './limits.ts';
import type { TableScene } from './scene.ts';
import { TOLD_SCENES } from './told.ts';

export const TABLE: readonly TableScene[] = [
  ...CONTROL_SCENES,
  ...GATE_SCENES,
  ...HOOK_SCENES,
  ...DRAIN_SCENES,
  ...FAILURE_SCENES,
  ...LIMIT_SCENES,
  ...TOLD_SCENES,
];
