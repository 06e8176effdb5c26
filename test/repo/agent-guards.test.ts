/**
 * Tests that the threat model, the code of the agent and the attacks have the same guards, and that each check of the
 * kinds below is a guard or names the guard that backs it.
 */
import { expect, test } from 'vitest';
import { ATTACKS } from '../attacks/agent-guard-attacks.ts';
import { AGENT_GUARDS } from '../attacks/agent-guards.ts';
import { filesOf, isTest } from './tree.ts';

const SOURCES = filesOf('src/{agent,http,dialects/kubeadm}/**/*.ts')
  .filter((file) => !isTest(file))
  .map(({ path, text }) => ({ path: path.slice('src/'.length), text }));
const PAGE = filesOf('docs/internals/threat-model.md')
  .map(({ text }) => text)
  .join('');

const MARK = /^\s*(?:[?:] )?\/\/ (Guard|Backed by) ([a-z-]+)\. \S/;
/** The calls and comparisons that decide what root runs, trusts or replaces. */
const CHECKS = [
  // The comparison of a hash in a variable is found by its name.
  /(?<!= await )\bhashFile\(/,
  /\b(?:isTrustedUser|whyForeign|assertTrusted(?:Path)?|assertReplaceable|makePrivate)\(/,
  /\b(?:executes|wasStartedFrom|isBundleName|isSameContent)\(/,
  /\bO_NOFOLLOW\b/,
  /\.isSymbolicLink\(\)/,
  /\.isFile\(\) [!=]==/,
  /\bmode & /,
  /\bmode: 0o7/,
  /\bgetuid\b/,
  /(?<!typeof )\bsha256 [!=]== (?!undefined)/,
  /[!=]== (?:\w+\.)?(?:sha256|wanted)\b/,
  /\bkept\?\.verify\(/,
  /\brejectUnauthorized:/,
  /^\s+[A-Z]\w+: '(?:yes|no|none)'/,
  /\bcontainerOf\('self'\)/,
];
/** Lines that look like a check of their own, each with the reason why they are none. */
const NO_GUARDS: Readonly<Record<string, string>> = {
  'agent/configuration/root-file.ts: mode: found.mode & 0o7777,':
    'the mode that the new file gets, too',
  'agent/download/download-checks.ts: const isKept = kept !== undefined && kept.sha256 === sha256?.toLowerCase();':
    'only says whether the plan needs a download',
  'agent/download/partial-file.ts: const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;':
    'the guard part-link opens a file with these flags',
  "agent/options.ts: flags['run-dir'] ?? (process.getuid?.() === 0 ? '/run/refit' : flags['state-dir']),":
    'the default of a flag',
  'agent/perform-step.ts: const isKept = facts?.gone === undefined && facts?.sha256 === sha256.toLowerCase();':
    'only words for people depend on it',
  'agent/service/trusted-service.ts: const distrust = whyForeign(pid);':
    'the guard socket-process looks at it',
  'agent/state/kept-binary.ts: if (!isWorking || kept?.isFile() !== true || kept.ino === installed.ino) return false;':
    'only says whether the removal of the file frees space',
  'agent/state/trusted-path.ts: async assertReplaceable(path: string): Promise<void> {':
    'a declaration',
  'agent/state/trusted-path.ts: async makePrivate(directory: string): Promise<void> {':
    'a declaration',
  'dialects/kubeadm/host/verify.ts: if (tag !== wanted)':
    'the tag of an image that the kubelet runs',
};

interface Lines {
  readonly path: string;
  readonly text: string;
}

/** Returns the numbers of the lines that the checks of guards in this file consist of. */
function guarded({ path, text }: Lines): Set<number> {
  const own = AGENT_GUARDS.filter(({ file }) => file === path).flatMap(({ name, check }) => {
    const at = text.indexOf(check, text.indexOf(`// Guard ${name}. `));
    const first = text.slice(0, at).split('\n').length - 1;
    return check.split('\n').map((_line, index) => first + index);
  });
  return new Set(own);
}

/** Returns the check lines of a file that are no guard and have no mark in the comment above, as `path: line`. */
function unmarked(file: Lines): string[] {
  const own = guarded(file);
  const lines = file.text.split('\n');
  return lines.flatMap((line, at) => {
    if (/^\s*(?:\/\/|\/?\*|import\b|export (?:async )?function|(?:async )?function)/.test(line))
      return [];
    if (own.has(at) || !CHECKS.some((check) => check.test(line))) return [];
    const above = lines.slice(0, at).findLastIndex((each) => !/^\s*\/\//.test(each));
    const isMarked = lines.slice(above + 1, at).some((each) => MARK.test(each));
    const shown = `${file.path}: ${line.trim()}`;
    return isMarked || Object.hasOwn(NO_GUARDS, shown) ? [] : [shown];
  });
}

const marks = (kind: string): string[] =>
  SOURCES.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line) => {
      const [, found, name] = MARK.exec(line) ?? [];
      return found === kind ? [`${name} ${path}`] : [];
    }),
  );

test('the threat model, the code of the agent and the attacks name the same guards', () => {
  const attacked = AGENT_GUARDS.map(({ name, file }) => `${name} ${file}`).toSorted();
  expect(attacked).not.toEqual([]);
  expect(marks('Guard').toSorted()).toEqual(attacked);
  expect(Object.keys(ATTACKS).toSorted()).toEqual(AGENT_GUARDS.map(({ name }) => name).toSorted());
  const rows = [...PAGE.matchAll(/^\| `([a-z-]+)` \| `([\w./-]+\.ts)` \| \S.* \|$/gm)];
  expect(rows.map(([, name, file]) => `${name} ${file}`).toSorted()).toEqual(attacked);
});

test('the check of each guard of the agent follows the comment that names the guard', () => {
  for (const { name, file, check } of AGENT_GUARDS) {
    const text = SOURCES.find(({ path }) => path === file)?.text ?? '';
    const after = text
      .slice(text.indexOf(`// Guard ${name}. `))
      .split('\n')
      .slice(1, 8)
      .join('\n');
    expect(`${name}: ${after}`).toContain(check);
  }
});

test('each guard of the agent has at least one planted weakness, and only guards back other checks', () => {
  expect(AGENT_GUARDS.filter(({ planted }) => Object.keys(planted).length === 0)).toEqual([]);
  const names = AGENT_GUARDS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  const backed = marks('Backed by').map((mark) => mark.split(' ', 1)[0] ?? '');
  expect(backed.filter((name) => !names.includes(name))).toEqual([]);
});

test('each check in the code of the agent is a guard, or names the guard that backs it', () => {
  expect(SOURCES.flatMap(unmarked)).toEqual([]);
});

test('each reason why a line of the agent is no guard is about a line that exists', () => {
  const lines = SOURCES.flatMap(({ path, text }) =>
    text.split('\n').map((line) => `${path}: ${line.trim()}`),
  );
  expect(Object.keys(NO_GUARDS).filter((line) => !lines.includes(line))).toEqual([]);
});

test('a check of the agent without a mark is found', () => {
  const check = '  if (!isTrustedUser(uid)) throw new Error();';
  expect(unmarked({ path: 'a.ts', text: check })).toEqual([`a.ts: ${check.trim()}`]);
  expect(unmarked({ path: 'a.ts', text: `  // Backed by here. Why.\n${check}` })).toEqual([]);
});
