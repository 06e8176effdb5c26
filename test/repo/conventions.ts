/**
 * The conventions that a pattern can check: where each convention applies, what breaks it, and examples that break it.
 */
import type { SourceFile } from './tree.ts';
import { isTest } from './tree.ts';

interface Convention {
  readonly title: string;
  readonly holdsIn: (file: SourceFile) => boolean;
  readonly broken: RegExp;
  /** Each example breaks the convention after every `~` is removed. The `~` keeps this file itself free of breaches. */
  readonly examples: readonly string[];
}

const everywhere = (): boolean => true;
const inCode = ({ path }: SourceFile): boolean => path.endsWith('.ts');
const inProduct = (file: SourceFile): boolean => file.path.startsWith('src/') && !isTest(file);
const inEngine = ({ path }: SourceFile): boolean => path.startsWith('src/engine/');
const inTests = (file: SourceFile): boolean => isTest(file) || file.path.startsWith('test/');

/**
 * These files read sentences for other reasons: the first two find sentences that differ only in their numbers, so that
 * a repetition is not told, and the last one reads an error of the library for command lines.
 */
const READ_OTHER_SENTENCES: ReadonlySet<string> = new Set([
  'src/engine/report/conditions.ts',
  'src/engine/report/idle-targets.ts',
  'src/cli/program.ts',
]);

export const CONVENTIONS: readonly Convention[] = [
  {
    title: 'the engine takes time, randomness and timers as parameters',
    holdsIn: (file) => inEngine(file) && !isTest(file),
    broken:
      /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bperformance\.now\b|\bTemporal\.Now\b|\bset(?:Timeout|Interval)\b/,
    examples: [
      'Date.now()',
      'new Date()',
      'Math.random()',
      'performance.now()',
      'setTimeout(tick, 5)',
    ],
  },
  {
    title: 'the version of a kubelet is read by the function for which an empty text is no version',
    holdsIn: (file) => inProduct(file) && file.path !== 'src/kube/resources.ts',
    broken: /nodeInfo\??\.kubeletVersion\b|\{[^}]*\bkubeletVersion\b[^}]*\} = [^;]*nodeInfo\b/,
    examples: [
      'node.status?.nodeInfo?.~kubeletVersion',
      'const { ~kubeletVersion } = node.status.nodeInfo;',
    ],
  },
  {
    title: 'the engine names no dialect and no product',
    holdsIn: inEngine,
    broken: /k0s|autopilot|cattle|rancher|kubeadm|kubeone|cluster.?api|\bcapi\b/i,
    examples: [
      'const k0sVersion = 1;',
      '// as in AutoPilot',
      "'cluster-api'",
      '/** The CAPI way. */',
    ],
  },
  {
    title: 'one reader and writer of YAML, which means by a text what kubectl means',
    holdsIn: (file) => inProduct(file) && !file.path.startsWith('src/util/yaml'),
    broken: /\b(?:from|import\(|require\()\s*['"]yaml['"]/,
    examples: ["import { parse } from '~yaml';", "} from '~yaml';", "await import('~yaml')"],
  },
  {
    // The first of several documents may be empty, and the last one usually is if the text ends with `---`.
    title: 'a text with one YAML document is read as one document, and not as the first of several',
    holdsIn: (file) => inProduct(file) && !file.path.startsWith('src/util/yaml'),
    broken: /\[[^\]\n]*\] = parseYaml\(|\bparseYaml\((?:(?! as ).)*\)\[/,
    examples: ['const [value] = ~parseYaml(text, fail);', 'parseYaml~(text, fail)[0]'],
  },
  {
    // The program is built as CommonJS. There, a file cannot wait.
    title: 'no file of the product waits while it is loaded',
    holdsIn: (file) => inProduct(file) && inCode(file),
    broken: /^(?:(?:export )?(?:const|let) .*= )?await /m,
    examples: [
      "await import('./a.ts');",
      'const all = await load();',
      'export const ALL = await Promise.all([',
    ],
  },
  {
    title: 'only the readers in engine/reasons/ take the sentences of Refit apart',
    holdsIn: (file) =>
      inProduct(file) &&
      /^src\/(?:engine|cli)\//.test(file.path) &&
      !file.path.startsWith('src/engine/reasons/') &&
      !READ_OTHER_SENTENCES.has(file.path),
    broken:
      /\b(?:message|reason|failure|sentence)\.(?:includes|startsWith|endsWith|split|match|matchAll|search|replace|replaceAll|indexOf)\(|\.(?:test|exec)\((?:\w+\.)?(?:message|reason|failure|sentence)\)/,
    examples: [
      "reason.message.~includes('failed')",
      "failure.~split(': ')",
      'FAILED_HOOK.~test(reason.message)',
    ],
  },
  {
    // `refit retry` cannot retry the nodes of every dialect. The codes' remedies are for the reference page, which says so.
    title: 'no sentence of the engine names `refit retry` without asking the dialect',
    holdsIn: (file) =>
      inEngine(file) &&
      !isTest(file) &&
      !['src/engine/model/tried-again.ts', 'src/engine/model/reasons.ts'].includes(file.path),
    broken: /^(?!\s*(?:\*|\/)).*refit (?:retry)/m,
    examples: ["  const ends = 'somebody runs refit ~retry w1';", 'lifts: `run refit ~retry`,'],
  },
  {
    title: 'an answer that may be missing has the shape of Asked',
    holdsIn: (file) => inProduct(file) && file.path !== 'src/engine/model/asked.ts',
    broken: /\| Unanswered\b/,
    examples: ['readonly health: boolean | ~Unanswered;'],
  },
  {
    title: 'exports have names',
    holdsIn: ({ path }) => path.endsWith('.ts') && !path.endsWith('.config.ts'),
    broken: /^export default\b|^export \{[^}]*\bas default\b/m,
    examples: ['export ~default run;', 'export { run as ~default };'],
  },
  {
    title: 'nothing suppresses the type checker or the linter',
    holdsIn: inCode,
    broken:
      /\bas\sany\b|:\sany(?=\s*[;,)=|&>\]}[])|<(?:any)>|@ts-(?:ignore|expect-error|nocheck)|(?:ox|es)lint-(?:disable)|biome-(?:ignore)/,
    examples: [
      'x as ~any',
      'let x: ~any;',
      'f(x: ~any[])',
      '// @ts-~ignore',
      '// oxlint-~disable no-empty',
    ],
  },
  {
    title: 'no error is swallowed silently',
    holdsIn: inCode,
    broken: /catch (?:\(\w*\) )?\{\s*\}/,
    examples: ['try { go(); } catch ~{}', 'catch (error) {\n}'],
  },
  {
    title: 'no work is left in comments',
    holdsIn: everywhere,
    broken: /\b(?:T(?:ODO)|F(?:IXME)|X{3}|H(?:ACK))\b/,
    examples: ['// TO~DO: later', 'FIX~ME'],
  },
  {
    title: 'no test is skipped, focused or still to do',
    holdsIn: inTests,
    broken: /\b(?:describe|it|test)\.(?:only|skip|todo)\b|\bx(?:it|describe)\(/,
    examples: ["test.~only('a')", "describe.~skip('a')", "xit~('a')"],
  },
  {
    title: 'tests wait for conditions, never for a fixed time',
    holdsIn: inTests,
    broken: /setTimeout\([^,]*(?:resolve|done|r),|\bsleep\(\d/,
    examples: ['new Promise((resolve) => setTimeout(~resolve~, 5))', 'await sleep(~5)'],
  },
  {
    // Every `vi.waitFor` must have a limit, because the default limit of one second is too short on a busy machine.
    title: 'each wait for a condition says how long',
    holdsIn: inTests,
    broken: /\bvi\.waitFor\((?!.*, (?:\d|\{|[A-Z_]+\)))[^\n]*\);$/m,
    examples: ['await vi.~waitFor(() => expect(a).toBe(1));'],
  },
  {
    title: 'the product writes to its own outputs, not to the console',
    holdsIn: inProduct,
    broken: /\bconsole\./,
    examples: ['console.log(1)'],
  },
  {
    // Tests may use `/home/somebody`.
    title: 'no path of a machine, no host of a registry',
    holdsIn: everywhere,
    broken:
      /(?:^|[\s"'`=(])\/(?!home\/somebody\b)(?:home|root|Users|work)\/[a-zA-Z]|https?:\/\/(?:registry|proxy|sum|files|deb)\.[a-z]/,
    examples: ['cd /~home/me/refit', "'/~Users/me'", 'https://~registry.example.com/x'],
  },
];

/** Where the convention is broken, as `path:line`. */
export function breaches({ holdsIn, broken }: Convention, files: readonly SourceFile[]): string[] {
  return files.filter(holdsIn).flatMap(({ path, text }) => {
    const match = broken.exec(text);
    return match === null ? [] : [`${path}:${text.slice(0, match.index).split('\n').length}`];
  });
}

/**
 * Returns the files whose names break the rules. File names must be in kebab-case, and must not be a word that fits any
 * file.
 */
export function namelessFiles(paths: readonly string[]): string[] {
  return paths.filter((path) => {
    const name = path.split('/').at(-1) ?? '';
    return (
      !/^[a-z0-9]+(?:[.-][a-z0-9]+)*\.ts$/.test(name) ||
      /^(?:utils?|helpers?|common|misc|index)\./.test(name)
    );
  });
}

/**
 * Returns the types that share a name but not a meaning, one line for each. Types of the API and of dialects share
 * names on purpose: for example, each dialect has its own Plan.
 */
export function ambiguousTypes(files: readonly SourceFile[]): string[] {
  const definitions = files
    .filter(({ path }) => !/^src\/(?:api|dialects)\//.test(path))
    .flatMap(({ path, text }) =>
      [...text.matchAll(/^export (?:type|interface|(?:abstract )?class) (\w+)/gm)].map(
        ([, name = '']) => ({
          name,
          path,
        }),
      ),
    );
  return [...Map.groupBy(definitions, ({ name }) => name)]
    .filter(([, same]) => same.length > 1)
    .map(([name, same]) => `${name} is defined in ${same.map(({ path }) => path).join(' and ')}`);
}
