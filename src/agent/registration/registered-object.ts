/** Owns the contract of an object that its agent creates and keeps true, beside carrying signals. */
import type { KubeObject } from '../../kube/types.ts';
import type { SignalObject } from '../object/signal-object.ts';

export interface RegisteredObject extends SignalObject {
  /**
   * Server-side apply: creates the object where there is none, takes the fields over where others have them, and leaves
   * every other field alone. Fields that were claimed before and are not any more are removed.
   */
  claim(fields: KubeObject): Promise<void>;
  /** PUT of the status under the object's resourceVersion: rejects with a conflict where anybody else wrote since. */
  writeStatus(object: KubeObject): Promise<void>;
}
