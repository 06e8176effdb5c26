/** All scenes of the table. */
import { CONTROL_SCENES } from './controls.ts';
import { FAILURE_SCENES } from './failures.ts';
import { GATE_SCENES } from './gates.ts';
import { HOOK_SCENES } from './hooks.ts';
import type { TableScene } from './scene.ts';
import { TOLD_SCENES } from './told.ts';

export const TABLE: readonly TableScene[] = [
  ...CONTROL_SCENES,
  ...GATE_SCENES,
  ...HOOK_SCENES,
  ...FAILURE_SCENES,
  ...TOLD_SCENES,
];
