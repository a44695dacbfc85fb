"""The scripts that all languages share, on what ``LeaderElection`` decides by."""

import json
import pathlib
import unittest

from tenure_client._trust import Told, Trust

SCRIPTS = pathlib.Path(__file__).parents[2] / "scripts" / "trust.json"


class Scripts(unittest.TestCase):
    def test_every_script_holds(self) -> None:
        scripts = json.loads(SCRIPTS.read_text())["scripts"]
        self.assertGreater(len(scripts), 15)
        for script in scripts:
            trust = Trust(script["ttl"], script.get("after", 0))
            for n, step in enumerate(script["steps"]):
                with self.subTest(script["name"], step=n + 1, what=step):
                    self.step(trust, step)

    def step(self, trust: Trust, step: dict) -> None:
        at = step["at"]
        if "told" in step:
            told = Told(**step["told"])
            if step.get("refused"):
                with self.assertRaises((ValueError, TypeError)):
                    trust.heed(step["sent"], at, told)
            else:
                self.assertEqual(trust.heed(step["sent"], at, told), step.get("event"))
        if step.get("give_up"):
            self.assertEqual(trust.end(), "lost")
        if "timer" in step:
            self.assertEqual(trust.expire(at), step["timer"])
        if "leads" in step:
            self.assertEqual(at < trust.until, step["leads"])
        if "token" in step:
            self.assertEqual(trust.term, step["token"])
        if "over" in step:
            self.assertEqual(trust.over, step["over"])
        if "until" in step:
            self.assertEqual(trust.until, step["until"])


if __name__ == "__main__":
    unittest.main()
