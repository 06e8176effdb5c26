/**
 * Carries out an attack on each guard of the shell scripts for kubeadm hosts. Then it removes or weakens the guard, and
 * carries out the same attack, which must succeed. So an attack that notices nothing fails here.
 */
import { expect, test } from 'vitest';
import type { Guard } from './kubeadm-guard-scenes.ts';
import { GUARDS } from './kubeadm-guards.ts';
import { KubeadmRig } from './kubeadm-rig.ts';
import { attackAsNobody } from './rig.ts';

const asWritten = (script: string): string => script;
/** Returns the text as it stands within the value of another script. */
const inValue = (text: string): string => text.replaceAll("'", `'\\''`);

/** Replaces the check in a script, which may be a value of the script that starts it. */
function planting({ name, check }: Guard, instead: string) {
  return (script: string): string => {
    const [from, to] = script.includes(check)
      ? [check, instead]
      : [inValue(check), inValue(instead)];
    const parts = script.split(from);
    if (parts.length !== 2)
      throw new Error(`${name}: found ${parts.length - 1} times in the script`);
    return parts.join(to);
  };
}

for (const guard of GUARDS) {
  const attack = guard.needsRoot ? attackAsNobody : test;
  attack(`the attack on the guard ${guard.name} fails`, async () => {
    await using rig = await KubeadmRig.create();
    expect(await guard.attack(rig, asWritten)).toBe(false);
  });
  for (const [what, instead] of Object.entries(guard.planted))
    attack(`the attack on the guard ${guard.name} succeeds once its check ${what}`, async () => {
      await using rig = await KubeadmRig.create();
      expect(await guard.attack(rig, planting(guard, instead))).toBe(true);
    });
}
