/**
 * A process that carries out the attacks on the guards of the agent. It loads the code of the product once. While it
 * loads, each check becomes a choice between the check and its planted weaknesses, so that one variable plants a
 * weakness. It prints the result of each attack as JSON. Its arguments are names of guards; without arguments, it carries
 * out all attacks.
 */
import { registerHooks } from 'node:module';
import type { Attack } from './agent-guard-scenes.ts';
import { AGENT_GUARDS, type AgentGuard } from './agent-guards.ts';

/** The time in which an attack must end. Only an attack that hangs needs it. */
const PATIENCE_MS = 60_000;
const PLANTED = 'globalThis.plantedWeakness';

/**
 * Returns the source, in which the check of the guard is a choice. If somebody removed or changed the check, the source
 * stays as it is, and the attack shows what that means.
 */
function withChoice(source: string, { name, check, planted }: AgentGuard): string {
  const at = source.indexOf(check, source.indexOf(`// Guard ${name}. `));
  if (at < 0) return source;
  const [property = ''] = /^\w+: /.exec(check) ?? [];
  const choices = Object.entries(planted).map(
    ([what, weak]) => `${PLANTED} === ${JSON.stringify(`${name} ${what}`)} ? (${weak}) : `,
  );
  const spread = check.startsWith('...') ? '...' : '';
  const original = check.slice(property.length + spread.length);
  const weak = choices.join('').replaceAll('(...', '(');
  return `${source.slice(0, at)}${property}${spread}(${weak}(${original}))${source.slice(at + check.length)}`;
}

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    const own = AGENT_GUARDS.filter(({ file }) => url.endsWith(`/src/${file}`));
    if (own.length === 0) return loaded;
    const source = new TextDecoder().decode(loaded.source as Uint8Array);
    return { ...loaded, source: own.reduce(withChoice, source) };
  },
});

async function resultOf(attack: Attack | undefined): Promise<boolean | string> {
  if (attack === undefined) return 'there is no attack';
  const { Scene } = await import('./agent-guard-scenes.ts');
  await using scene = await Scene.create();
  const late = Promise.withResolvers<string>();
  const timer = setTimeout(() => late.resolve('the attack did not end'), PATIENCE_MS);
  try {
    return await Promise.race([attack(scene), late.promise]);
  } catch (error) {
    return `the attack itself failed: ${(error as Error).stack}`;
  } finally {
    clearTimeout(timer);
  }
}

const { ATTACKS } = await import('./agent-guard-attacks.ts');
const only = process.argv.slice(2);
const results: Record<string, boolean | string> = {};
for (const { name, planted } of AGENT_GUARDS) {
  if (only.length > 0 && !only.includes(name)) continue;
  for (const what of ['', ...Object.keys(planted)]) {
    const key = what === '' ? name : `${name} ${what}`;
    Object.assign(globalThis, { plantedWeakness: key });
    results[key] = await resultOf(ATTACKS[name]);
  }
}
process.stdout.write(JSON.stringify(results), () => process.exit(0));
