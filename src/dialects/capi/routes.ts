/** Owns the addresses of the hooks, and the discovery that tells them. */
import { HOOK_GROUP, type HookName, type HookResponse } from '../../api/capi/hooks.ts';

interface Handler {
  /** Unique among all handlers of a server, and the last part of its path. */
  readonly name: string;
  readonly hook: Exclude<HookName, 'Discovery'>;
  /** Seconds after which the caller hangs up; at most 30. */
  readonly timeoutSeconds: number;
}

export const HANDLERS: readonly Handler[] = [
  { name: 'can-update-machine', hook: 'CanUpdateMachine', timeoutSeconds: 10 },
  { name: 'can-update-machineset', hook: 'CanUpdateMachineSet', timeoutSeconds: 10 },
  { name: 'update-machine', hook: 'UpdateMachine', timeoutSeconds: 20 },
];

const ROUTES: ReadonlyMap<string, HookName> = new Map([
  [`/${HOOK_GROUP}/discovery`, 'Discovery'],
  ...HANDLERS.map(({ name, hook }) => [`/${HOOK_GROUP}/${hook.toLowerCase()}/${name}`, hook] as const),
]);

/** The hook, or the status code of the refusal. Paths match exactly, in upper and lower case. */
export function routeOf(method: string | undefined, path: string): HookName | 404 | 405 {
  const hook = ROUTES.get(path);
  if (hook === undefined) return 404;
  return method === 'POST' ? hook : 405;
}

/** `Ignore` would turn every lost answer of UpdateMachine into "done", so all of them ask for `Fail`. */
export function discovery(): HookResponse & { readonly handlers: readonly object[] } {
  return {
    apiVersion: HOOK_GROUP,
    kind: 'DiscoveryResponse',
    status: 'Success',
    handlers: HANDLERS.map(({ name, hook, timeoutSeconds }) => ({
      name,
      requestHook: { apiVersion: HOOK_GROUP, hook },
      timeoutSeconds,
      failurePolicy: 'Fail',
    })),
  };
}
