/** The objects in the body of a hook: one Machine with its bootstrap and infrastructure objects. */
import type { Patch, Triple } from '../../../src/api/capi/hooks.ts';
import type { Json } from '../../../src/util/json.ts';

export interface Specs {
  readonly machine?: Json;
  readonly infra?: Json;
  readonly bootstrap?: Json;
}

export function buildTriple({ machine = {}, infra = {}, bootstrap = {} }: Specs = {}): Triple {
  const object = (kind: string, spec: Json) => ({
    kind,
    metadata: { name: 'm1', namespace: 'default' },
    spec,
  });
  return {
    machine: object('Machine', machine),
    infrastructureMachine: object('DevMachine', infra),
    bootstrapConfig: object('KubeadmConfig', bootstrap),
  };
}

export function jsonPatch(...operations: object[]): Patch {
  return {
    patchType: 'JSONPatch',
    patch: Buffer.from(JSON.stringify(operations)).toString('base64'),
  };
}

export function mergePatch(document: object): Patch {
  return {
    patchType: 'JSONMergePatch',
    patch: Buffer.from(JSON.stringify(document)).toString('base64'),
  };
}
