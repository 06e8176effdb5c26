/** Owns the answers to UpdateMachine: the words stay the same while nothing changes, since each change is written to the Machine. */
import { HOOK_GROUP, type UpdateMachineResponse } from '../../api/capi/hooks.ts';

const HEAD = { apiVersion: HOOK_GROUP, kind: 'UpdateMachineResponse' } as const;
/** Seconds; a call costs a few reads, and the steps of an update take seconds to minutes. */
const RETRY_SECONDS = 2;

export const DONE: UpdateMachineResponse = { ...HEAD, status: 'Success', retryAfterSeconds: 0 };

export function underWay(message: string): UpdateMachineResponse {
  return { ...HEAD, status: 'Success', message, retryAfterSeconds: RETRY_SECONDS };
}

/** Somebody has to look at it: the caller asks again all the same, with growing pauses. */
export function failure(message: string): UpdateMachineResponse {
  return { ...HEAD, status: 'Failure', message, retryAfterSeconds: 0 };
}
