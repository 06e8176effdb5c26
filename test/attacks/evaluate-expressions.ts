/** A process that evaluates the expressions of its arguments one after the other, and prints its largest memory. */
import { compileCel } from '../../src/health/cel.ts';

const object = {
  text: 'a'.repeat(1_000_000),
  list: Array.from({ length: 20_000 }, (_each, index) => index),
};
for (const expression of process.argv.slice(2)) {
  const program = compileCel(expression);
  const message = typeof program === 'string' ? program : JSON.stringify(program.evaluate(object));
  process.stdout.write(`${message}\n`);
}
process.stdout.write(`${process.resourceUsage().maxRSS}\n`);
