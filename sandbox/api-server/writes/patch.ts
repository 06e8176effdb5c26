/** Merge patches and JSON patches with the limits and the answers of an API server. */

import { applyMergePatch, isRecord, type Json } from '../../../src/util/json.ts';
import { ApiFailure, badRequest } from '../failure.ts';
import { applyJsonPatch, PatchError, type PatchOperation } from './json-patch.ts';

type Members = Record<string, unknown>;

export function mergePatch(target: unknown, patch: unknown): unknown {
  return applyMergePatch(target as Json, patch as Json);
}

/** The maximum number of operations in one patch that kube-apiserver accepts. */
const OPERATION_LIMIT = 10_000;

/** Throws 422 if an operation fails. */
export function jsonPatch(target: Members, operations: unknown): unknown {
  if (!Array.isArray(operations)) {
    const found = isRecord(operations) ? 'object' : typeof operations;
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${found} into Go value of type []handlers.jsonPatchOp`,
    );
  }
  if (operations.length > OPERATION_LIMIT) {
    const message = `The allowed maximum operations in a JSON patch is ${OPERATION_LIMIT}, got ${operations.length}`;
    throw new ApiFailure(413, 'RequestEntityTooLarge', message);
  }
  try {
    return applyJsonPatch(target as Json, operations as PatchOperation[]);
  } catch (error) {
    if (!(error instanceof PatchError)) throw error;
    throw new ApiFailure(
      422,
      'Invalid',
      'the server rejected our request due to an error in our request',
      {},
    );
  }
}
