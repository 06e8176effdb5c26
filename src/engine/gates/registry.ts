/** Owns the lists of gates and verifiers, in the order in which they are asked. */
import { apiServersReady } from './api-servers-ready.ts';
import { drainPossible } from './drain-possible.ts';
import { nodeReady } from './node-ready.ts';
import { notHeld } from './not-held.ts';
import { othersAtWork } from './others-at-work.ts';
import { platformSupported } from './platform-supported.ts';
import { targetExists } from './target-exists.ts';
import type { Gate } from './types.ts';

/** Asked once for every target before anything starts: one that stops refuses the whole plan. */
export const ADMISSION: readonly Gate[] = [targetExists, platformSupported];

/** Asked before each target starts. */
export const BEFORE: readonly Gate[] = [
  notHeld,
  targetExists,
  platformSupported,
  othersAtWork,
  apiServersReady,
  nodeReady,
  drainPossible,
];

/** Asked after a target reported success, before its slot is free again. */
export const AFTER: readonly Gate[] = [apiServersReady, nodeReady];
